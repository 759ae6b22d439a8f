//! A timerfd, which the program's loop or an async runtime polls.

use super::refused::RefusedCall;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::sync::Arc;
use tickless_core::time::Ns;

/// A timerfd on `CLOCK_MONOTONIC`, with the number of system calls that have set it.
#[derive(Debug)]
pub struct Timerfd {
    file: Arc<OwnedFd>,
    calls: AtomicU64,
}

impl Timerfd {
    /// Makes a timerfd that is not armed. Checks that it can be armed.
    pub fn new() -> Result<Timerfd, RefusedCall> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let file = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|errno| RefusedCall::new("timerfd_create", errno))?;
        let timer = Timerfd { file: Arc::new(file), calls: AtomicU64::new(0) };
        timer.set(Ns::NEVER).map_err(|errno| RefusedCall::new("timerfd_settime", errno))?;
        timer.calls.store(0, Ordering::Relaxed);
        Ok(timer)
    }

    /// Arms the timerfd for a time of `CLOCK_MONOTONIC`; [`Ns::NEVER`] disarms it. A time in the
    /// past expires at once. Discards an unread expiry.
    pub fn set(&self, at: Ns) -> Result<(), Errno> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // For the kernel, zero means never.
        let at = if at == Ns::NEVER { 0 } else { at.0.max(1) };
        let it_value =
            Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as _ };
        let time = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.file, TimerfdTimerFlags::ABSTIME, &time).map(drop)
    }

    /// Reads an expiry. Returns whether there was one.
    pub fn clear(&self) -> bool {
        rustix::io::read(&self.file, &mut [0u8; 8]).is_ok()
    }

    pub fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl AsFd for Timerfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
