//! The task that drives the timers of a runtime.

use super::RuntimeTimers;
use super::clock::RuntimeClock;
use crate::builder::Builder;
use crate::event_loop::EventLoopDriver;
use crate::platform::device::own_loop::LoopDevice;
#[cfg(linux_platform)]
use crate::platform::device::timerfd::Timerfd;
use crate::time::to_std;
#[cfg(linux_platform)]
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
#[cfg(linux_platform)]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep};

#[derive(Debug)]
pub(super) struct Driver {
    driver: EventLoopDriver<()>,
    timers: Arc<RuntimeTimers>,
    /// A timerfd for the next deadline; `None` if the clock was already paused when the task was
    /// spawned.
    #[cfg(linux_platform)]
    descriptor: Option<AsyncFd<Arc<OwnedFd>>>,
    /// While the program moves the runtime's clock: a sleep of tokio's until the next deadline,
    /// which makes tokio poll the task then.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Driver {
    /// Spawns the task that drives the timers. `None` if the system provides no event device.
    #[track_caller]
    pub(super) fn start(runtime: &Handle) -> Option<Weak<RuntimeTimers>> {
        let clock = Arc::new(RuntimeClock::of(runtime));
        #[cfg(not(linux_platform))]
        if !clock.is_known_virtual() {
            return None;
        }
        #[cfg(linux_platform)]
        let (timer, descriptor) = if clock.is_known_virtual() {
            (None, None)
        } else {
            let timer = Timerfd::new().ok()?;
            #[allow(deprecated, reason = "its replacement needs a newer tokio")]
            let descriptor = AsyncFd::with_interest(timer.descriptor(), Interest::READABLE).ok()?;
            (Some(timer), Some(descriptor))
        };
        let device = LoopDevice::in_runtime(
            Arc::<RuntimeClock>::clone(&clock),
            #[cfg(linux_platform)]
            timer,
        );
        let (timers, driver) =
            Builder::new().start_in_runtime(Arc::<RuntimeClock>::clone(&clock), device);
        let timers = Arc::new(RuntimeTimers { timers, clock });
        let weak = Arc::downgrade(&timers);
        runtime.spawn(Driver {
            driver,
            timers,
            #[cfg(linux_platform)]
            descriptor,
            sleep: None,
        });
        Some(weak)
    }

    /// Returns whether the timerfd has expired since the last call.
    #[cfg(linux_platform)]
    fn poll_descriptor(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_expired = false;
        if let Some(descriptor) = &self.descriptor {
            while let Poll::Ready(Ok(mut ready)) = descriptor.poll_read_ready(cx) {
                // Tokio's reactor reports each expiry once, so the descriptor need not be read.
                ready.clear_ready();
                has_expired = true;
            }
        }
        has_expired
    }

    /// Runs the due timers, and makes the runtime poll the task at the next deadline.
    fn poll_virtual(&mut self, cx: &mut Context<'_>) {
        loop {
            self.driver.run_and_rearm();
            let Some(next) = self.driver.next_event() else {
                // No timer is pending. Drop the sleep: otherwise tokio would advance a paused clock
                // to its end.
                self.sleep = None;
                return;
            };
            let next = Instant::from_std(to_std(next));
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            if sleep.deadline() != next || sleep.is_elapsed() {
                sleep.as_mut().reset(next);
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return;
            }
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.timers.clock.set_driver(cx.waker());
        #[cfg(linux_platform)]
        let has_expired = self.poll_descriptor(cx);
        if self.timers.clock.check() {
            self.poll_virtual(cx);
            return Poll::Pending;
        }
        // Each arming for an earlier deadline sets the timerfd at once. So no timer is due unless
        // the timerfd has expired.
        #[cfg(linux_platform)]
        if has_expired {
            self.driver.run_and_rearm();
        }
        // Record the deadline for which the task waits: if the clock is paused later, a thread that
        // arms a timer for an earlier time wakes the task.
        self.driver.next_event();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.timers.clock.end();
        while self.driver.run_and_rearm() > 0 {}
    }
}
