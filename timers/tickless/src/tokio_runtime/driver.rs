//! What runs the timers of a runtime: the reactor, and a task.
//!
//! When the timerfd expires, the reactor wakes an [`Event`], which fires the due timers at once, as
//! tokio fires its own: on the worker that waited in the reactor, before it takes up tasks. The
//! tasks of these timers then are in that worker's queue, and the worker wakes at most one other
//! worker for all of them. A task that fired the timers would first have to be scheduled, and would
//! wake a worker while it wakes the other tasks.
//!
//! If the program has chosen tokio's sleep as the event device, the reactor wakes the `Event` when
//! that sleep ends. A thread that arms an earlier timer wakes the task, to reset the sleep.
//!
//! The task owns the timers, so they end with the runtime. While the program moves the runtime's
//! clock, the task also fires the timers.

use super::RuntimeTimers;
use super::clock::RuntimeClock;
use crate::builder::Builder;
use crate::event_loop::EventLoopDriver;
use crate::platform::device::own_loop::LoopDevice;
#[cfg(linux_platform)]
use crate::platform::device::timerfd::Timerfd;
use crate::platform::locked::locked;
use crate::platform::runtime::Runtime;
use crate::time::to_std;
#[cfg(linux_platform)]
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use tickless_core::time::{CpuId, Ns};
#[cfg(linux_platform)]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep};

/// Fires the due timers, on one thread at a time.
#[derive(Debug)]
pub(super) struct Driver {
    state: Mutex<DriverState>,
    /// The requests to fire timers since a thread began to serve them; zero while no thread does.
    requests: AtomicU64,
    /// Whether `fire_late` wants timers fired although the reactor has reported no expiry.
    pub(super) are_late: AtomicBool,
    /// A timerfd for the next deadline; `None` if a sleep of tokio's was used from the start.
    #[cfg(linux_platform)]
    descriptor: Option<AsyncFd<Arc<OwnedFd>>>,
}

#[derive(Debug)]
struct DriverState {
    driver: EventLoopDriver<()>,
    /// A sleep of tokio's until the next deadline. `None` if none is pending, or with the timerfd.
    sleep: Option<Pin<Box<Sleep>>>,
}

/// The waker that the reactor wakes when the timerfd expires, or a sleep of tokio's ends.
#[derive(Debug)]
pub(super) struct Event(pub(super) Weak<RuntimeTimers>);

/// The task.
#[derive(Debug)]
struct Owner {
    timers: Arc<RuntimeTimers>,
    /// The waker of an [`Event`].
    event: Waker,
}

impl RuntimeTimers {
    /// Starts the timers of a runtime, on its clock, and spawns their task. `None` if the system
    /// provides no event device.
    #[track_caller]
    pub(super) fn start(runtime: &Handle, clock: RuntimeClock) -> Option<Weak<RuntimeTimers>> {
        let clock = Arc::new(clock);
        #[cfg(not(linux_platform))]
        if !clock.waits_in_task() {
            return None;
        }
        #[cfg(linux_platform)]
        let (timer, descriptor) = if clock.waits_in_task() {
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
        let driver = Driver {
            state: Mutex::new(DriverState { driver, sleep: None }),
            requests: AtomicU64::new(0),
            are_late: AtomicBool::new(false),
            #[cfg(linux_platform)]
            descriptor,
        };
        let base = timers.shared.bases.address_of(CpuId(0));
        let timers =
            Arc::new(RuntimeTimers { timers, clock, base, driver, rescue: Mutex::default() });
        let weak = Arc::downgrade(&timers);
        let event = Waker::from(Arc::new(Event(weak.clone())));
        runtime.spawn(Owner { timers, event });
        Some(weak)
    }

    /// Fires the timers that are due if the timerfd or the sleep has expired, and makes the reactor
    /// wake `event` at the next expiry. If the runtime has ended, fires all pending timers.
    pub(super) fn fire(&self, event: &Waker) {
        self.driver.run(|state| {
            if self.clock.has_ended() {
                while state.driver.run_and_rearm() > 0 {}
                return;
            }
            let has_expired = self.driver.has_expired(event);
            let are_late = self.driver.are_late.swap(false, Ordering::Relaxed);
            if self.clock.waits_in_task() {
                if are_late {
                    state.driver.run_and_rearm();
                }
                state.run_in_sleep(self, event);
                return;
            }
            // Each arming for an earlier deadline sets the timerfd at once. So no timer is due
            // unless the timerfd has expired.
            if has_expired || are_late {
                let now = self.clock.now();
                state.driver.run_and_rearm();
                self.clock.set_seen(now);
            }
            // Record the deadline for which the reactor waits. If the clock is paused later, a
            // thread that arms a timer for an earlier time wakes the task.
            state.driver.next_event();
        });
    }
}

impl DriverState {
    /// Runs the due timers, and makes tokio wake `waker` at the next deadline.
    ///
    /// As with tokio's own timers, a timer is due when tokio's driver has reached its deadline, and
    /// not as soon as the clock has.
    fn run_in_sleep(&mut self, timers: &RuntimeTimers, waker: &Waker) {
        loop {
            let earliest = timers.timers.shared.bases.exact_next_event(CpuId(0));
            if earliest > timers.clock.now() {
                // Nothing is due: only update the deadline, after timers have been dropped.
                self.driver.run_and_rearm();
            }
            // The device's deadline of a coarse timer is the end of its bucket.
            let next = self.driver.next_event().map_or(earliest, |next| earliest.min(next.to_ns()));
            if next == Ns::NEVER {
                // No timer is pending. Drop the sleep: tokio would advance a paused clock to it.
                self.sleep = None;
                return;
            }
            let reached = next;
            let next = Instant::from_std(to_std(next.into()));
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            if sleep.deadline() != next || sleep.is_elapsed() {
                sleep.as_mut().reset(next);
            }
            if sleep.as_mut().poll(&mut Context::from_waker(waker)).is_pending() {
                return;
            }
            timers.clock.fire_until(reached, || {
                self.driver.run_and_rearm();
            });
        }
    }
}

impl Driver {
    /// Calls the closure `run`. If a call of this function is in progress already, on any thread,
    /// only makes that call run its own closure once more.
    fn run(&self, mut run: impl FnMut(&mut DriverState)) {
        let mut seen = 1;
        // Release: pairs with the Acquire below, so the other call sees what this thread has done.
        if self.requests.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            run(&mut locked(&self.state));
            let (set, failed) = (Ordering::AcqRel, Ordering::Acquire);
            match self.requests.compare_exchange(seen, 0, set, failed) {
                Ok(_) => return,
                Err(more) => seen = more,
            }
        }
    }

    /// Returns whether the timerfd has expired since the last call.
    #[cfg(linux_platform)]
    fn has_expired(&self, event: &Waker) -> bool {
        let (mut has_expired, cx) = (false, &mut Context::from_waker(event));
        if let Some(descriptor) = &self.descriptor {
            while let Poll::Ready(Ok(mut ready)) = descriptor.poll_read_ready(cx) {
                // Tokio's reactor reports each expiry once, so the descriptor need not be read.
                ready.clear_ready();
                has_expired = true;
            }
        }
        has_expired
    }

    #[cfg(not(linux_platform))]
    fn has_expired(&self, _: &Waker) -> bool {
        false
    }
}

impl Wake for Event {
    fn wake(self: Arc<Self>) {
        if let Some(timers) = self.0.upgrade() {
            timers.fire(&Waker::from(self));
        }
    }
}

impl Future for Owner {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.timers.clock.set_task(cx.waker());
        // This is the first poll, or an armed timer is due before the sleep ends.
        self.timers.fire(&self.event);
        Poll::Pending
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.timers.clock.end();
        self.timers.fire(Waker::noop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_during_another_one_makes_that_run_again() {
        let (_timers, driver) = Builder::new().start_in_loop_with(|_| ());
        let driver = Driver {
            state: Mutex::new(DriverState { driver, sleep: None }),
            requests: AtomicU64::new(0),
            are_late: AtomicBool::new(false),
            #[cfg(linux_platform)]
            descriptor: None,
        };
        for runs in 1..=3 {
            let mut order = Vec::new();
            driver.run(|_| {
                order.push(order.len());
                if order.len() < runs {
                    driver.run(|_| unreachable!("the outer call runs instead"));
                }
            });
            assert_eq!(order.len(), runs);
        }
    }
}
