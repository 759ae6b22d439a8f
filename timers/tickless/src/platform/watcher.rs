//! Notices when the wall clock is set, which also happens after a suspend. The kernel then cancels
//! a timerfd on `CLOCK_REALTIME`, for which a thread waits.

use crate::platform::device::refused::RefusedCall;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

#[derive(Debug)]
pub struct Watcher {
    /// The timerfd that the kernel cancels when the clock is set.
    timer: OwnedFd,
    end: OwnedFd,
}

impl Watcher {
    /// Creates a watcher, which notices when the clock is set from here on.
    pub fn new() -> Result<Watcher, RefusedCall> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)
            .map_err(|errno| RefusedCall::new("timerfd_create", errno))?;
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| RefusedCall::new("eventfd2", errno))?;
        let watcher = Watcher { timer, end };
        watcher.arm().map_err(|errno| RefusedCall::new("timerfd_settime", errno))?;
        Ok(watcher)
    }

    /// Calls `stepped` each time that the clock has been set, until [`end`](Watcher::end) is
    /// called, or the system refuses a call.
    pub fn watch(&self, mut stepped: impl FnMut()) -> Result<(), RefusedCall> {
        loop {
            let mut files = [&self.timer, &self.end].map(|file| PollFd::new(file, PollFlags::IN));
            match poll(&mut files, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(RefusedCall::new("poll", errno)),
            }
            if !files[1].revents().is_empty() {
                return Ok(());
            }
            // Rearm the timer before the call of `stepped`, so that the timer notices if the clock
            // is set again during that call.
            let read = rustix::io::read(&self.timer, &mut [0u8; 8]);
            self.arm().map_err(|errno| RefusedCall::new("timerfd_settime", errno))?;
            // Reading a cancelled timer fails with another error than `EAGAIN`. Reading succeeds if
            // the timer has expired: then the clock was set to a time after its expiry.
            if read != Err(Errno::AGAIN) {
                stepped();
            }
        }
    }

    /// Makes `watch` return. If `watch` is called later, it returns at once.
    pub fn end(&self) {
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
    }

    /// Arms the timerfd, whose read ends with an error when wall-clock time is set.
    fn arm(&self) -> Result<(), Errno> {
        // The kernel cancels only an armed timer. It should not expire: arm it for the year 2242.
        let far = Timespec { tv_sec: 1 << 33, tv_nsec: 0 };
        let time = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: far };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&self.timer, flags, &time).map(drop)
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits for a thread")]
#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};
    use rustix::time::{ClockId, clock_gettime};
    use std::time::{Duration, Instant};

    /// Method: the timerfd is made to expire, which the watcher takes for a setting of the clock. A
    /// test cannot set the machine's clock.
    #[test]
    #[cfg_attr(miri, ignore = "there is no timerfd under Miri")]
    fn each_step_is_reported() {
        let (watcher, steps) = (Watcher::new().expect("a timerfd"), AtomicU64::new(0));
        std::thread::scope(|s| {
            let watching = s.spawn(|| {
                watcher.watch(|| {
                    steps.fetch_add(1, Ordering::SeqCst);
                })
            });
            for round in 1..=3 {
                let it_value = clock_gettime(ClockId::Realtime);
                let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                let passed = Itimerspec { it_interval, it_value };
                let begun = Instant::now();
                while steps.load(Ordering::SeqCst) < round {
                    // Repeat: the watcher is perhaps rearming the timer, which discards the expiry.
                    let flags = TimerfdTimerFlags::ABSTIME;
                    assert!(timerfd_settime(&watcher.timer, flags, &passed).is_ok());
                    assert!(begun.elapsed() < Duration::from_secs(20), "the step is not reported");
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            watcher.end();
            assert!(watching.join().is_ok_and(|watched| watched.is_ok()));
        });
    }
}
