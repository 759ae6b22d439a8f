//! An event device that consists of a timerfd, and an epoll in which the driver thread waits for
//! it.
//!
//! The thread that arms a timer programs the device under the lock of the base. The epoll is
//! edge-triggered: each expiry wakes the driver once, and no thread has to read it. Programming the
//! device discards an expiry that the driver has not seen yet. No timer is lost by that: the new
//! deadline was chosen after the expiry, and if it has passed, the device expires again at once.
//!
//! If the system refuses one of these calls later (because of a new seccomp filter), the device
//! wakes its driver through an eventfd, and the driver waits on its futex from then on.

use super::fallback::RefusedCall;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::sync::{Arc, OnceLock};
use tickless_core::time::Ns;

/// A timerfd on `CLOCK_MONOTONIC`, with the number of system calls that have set it.
#[derive(Debug)]
pub struct Timerfd {
    file: Arc<OwnedFd>,
    calls: AtomicU64,
}

#[derive(Debug)]
pub struct EpollDevice {
    timer: Timerfd,
    epoll: OwnedFd,
    /// Becomes readable when the driver must wait on its futex instead.
    called: OwnedFd,
    is_called: AtomicBool,
    refused: OnceLock<RefusedCall>,
}

const TIMER: u64 = 0;
const CALLED: u64 = 1;

impl Timerfd {
    /// Makes a timerfd that is not armed. Checks that it can be armed.
    pub fn new() -> Result<Timerfd, RefusedCall> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let file = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|errno| RefusedCall::new("timerfd_create", errno))?;
        let timer = Timerfd { file: Arc::new(file), calls: AtomicU64::new(0) };
        timer.set(Ns::NEVER).map_err(|errno| RefusedCall::new(SETTIME, errno))?;
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

impl EpollDevice {
    pub fn new() -> Result<EpollDevice, RefusedCall> {
        let refused = |call| move |errno| RefusedCall::new(call, errno);
        let timer = Timerfd::new()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let called = eventfd(0, flags).map_err(refused("eventfd2"))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(refused("epoll_create1"))?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), edge)
            .map_err(refused("epoll_ctl"))?;
        let level = epoll::EventFlags::IN;
        epoll::add(&epoll, &called, epoll::EventData::new_u64(CALLED), level)
            .map_err(refused("epoll_ctl"))?;
        let device = EpollDevice {
            timer,
            epoll,
            called,
            is_called: AtomicBool::new(false),
            refused: OnceLock::new(),
        };
        device.wait(Some(core::time::Duration::ZERO));
        match device.refused() {
            Some(fallback) => Err(fallback),
            None => Ok(device),
        }
    }

    /// Programs the device. Returns `false` if the caller must use [`call`](EpollDevice::call).
    pub fn set(&self, at: Ns) -> bool {
        self.refused.get().is_none()
            && self.timer.set(at).map_err(|errno| self.give_up(SETTIME, errno)).is_ok()
    }

    /// Waits until the timerfd expires, another thread uses [`call`](EpollDevice::call), or
    /// `at_most` has passed, rounded up to milliseconds for the epoll of older kernels.
    pub fn wait(&self, at_most: Option<core::time::Duration>) {
        let timeout = at_most.map(|left| {
            let ms = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i64;
            Timespec { tv_sec: ms / 1000, tv_nsec: (ms % 1000 * 1_000_000) as _ }
        });
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 2];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            // Whatever ended the wait, the driver checks its base next.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => self.give_up("epoll_wait", errno),
        }
    }

    /// Wakes the driver, and lets it never wait in this device again. At most one system call.
    pub fn call(&self) {
        if !self.is_called.load(Ordering::Relaxed) {
            let _ = rustix::io::write(&self.called, &1u64.to_ne_bytes());
            // Set the flag after the write: otherwise other threads would rely on this thread,
            // which may lose its CPU before it has woken the driver.
            self.is_called.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the system call that was refused. If there is one, the device is not used any more.
    pub fn refused(&self) -> Option<RefusedCall> {
        self.refused.get().copied()
    }

    pub fn calls(&self) -> u64 {
        self.timer.calls()
    }

    #[cold]
    fn give_up(&self, call: &'static str, errno: Errno) {
        self.refused.get_or_init(|| RefusedCall::new(call, errno));
    }
}

const SETTIME: &str = "timerfd_settime";
