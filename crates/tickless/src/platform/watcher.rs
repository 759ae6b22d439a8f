//! What the kernel tells whoever asks when the time of day is set: a timerfd on `CLOCK_REALTIME`
//! that is to be cancelled then. A suspend sets that clock too.

use crate::platform::device::fallback::RefusedCall;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// What the watching thread waits for.
#[derive(Debug)]
pub struct Watcher {
    timer: OwnedFd,
    end: OwnedFd,
}

impl Watcher {
    /// One that hears of everything from now on.
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

    /// Calls `stepped` whenever the clock was set, until told to end. An error says why it cannot
    /// go on.
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
            // Armed anew before anybody looks: a step in between is told of once more.
            let told = rustix::io::read(&self.timer, &mut [0u8; 8]);
            self.arm().map_err(|errno| RefusedCall::new("timerfd_settime", errno))?;
            // It is far from expiring, and may be read as if it had when time went there.
            if told != Err(Errno::AGAIN) {
                stepped();
            }
        }
    }

    /// Has `watch` return, now or later.
    pub fn end(&self) {
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
    }

    fn arm(&self) -> Result<(), Errno> {
        // The year 2243: what lies beyond is nobody's timer.
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

    /// Goal: whoever watches is woken by its timerfd time and again, and ends when told to.
    /// Method: the timerfd is made to expire, which reads like a step to the watcher: nobody sets
    /// the clock for a test.
    #[test]
    #[cfg_attr(miri, ignore = "there is no timerfd under Miri")]
    fn every_word_is_heard() {
        let (watcher, heard) = (Watcher::new().expect("a timerfd can be had"), AtomicU64::new(0));
        std::thread::scope(|s| {
            let watching = s.spawn(|| {
                watcher.watch(|| {
                    heard.fetch_add(1, Ordering::SeqCst);
                })
            });
            for round in 1..=3 {
                let it_value = clock_gettime(ClockId::Realtime);
                let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                let passed = Itimerspec { it_interval, it_value };
                let begun = Instant::now();
                while heard.load(Ordering::SeqCst) < round {
                    // Again, should the watcher have armed it in between.
                    let flags = TimerfdTimerFlags::ABSTIME;
                    assert!(timerfd_settime(&watcher.timer, flags, &passed).is_ok());
                    assert!(begun.elapsed() < Duration::from_secs(20), "nobody hears");
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            watcher.end();
            assert!(watching.join().is_ok_and(|watched| watched.is_ok()));
        });
    }
}
