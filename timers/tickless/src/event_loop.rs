//! Timers that the program's event loop drives, without any thread of this library. Unlike
//! [`LocalTimers`](crate::LocalTimers), which belong to one thread, these timers can be armed and
//! cancelled from any thread; they fire in the loop.

use crate::platform::device::own_loop::LoopDevice;
use crate::timer::shared::Shared;
use crate::timer::wakers::Wakers;
use std::fmt;
#[cfg(linux_platform)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;
use tickless_core::time::{CpuId, Instant, Ns};

/// What wakes the loop of a driver by default: a file descriptor that the loop polls.
#[cfg(linux_platform)]
type DefaultWake = Arc<OwnedFd>;
#[cfg(not(linux_platform))]
type DefaultWake = ();

/// The driver of one base. The program's event loop runs the base's timers with it.
///
/// ```
/// use rustix::event::{PollFd, PollFlags, poll};
/// use std::time::Duration;
///
/// let (timers, mut driver) = tickless::Timers::builder().start_in_loop()?;
/// let (tx, rx) = std::sync::mpsc::channel();
/// let timer = timers.hrtimer(move |_| tx.send(()).unwrap_or(()));
/// timer.start(Duration::from_millis(5))?; // from any thread
/// while rx.try_recv().is_err() {
///     poll(&mut [PollFd::new(&driver, PollFlags::IN)], None)?;
///     driver.run();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `W` is what wakes the loop: a descriptor to poll, or `()` if
/// [`start_in_loop_with`](crate::Builder::start_in_loop_with) was given a callback.
///
/// # Rules
///
/// - The loop calls [`run`](Self::run) when the descriptor is readable, or when the
///   [`timeout`](EventLoopDriver::timeout) has passed; calling it more often is harmless.
/// - Callbacks run inside `run`, on the calling thread, one at a time. On another thread, a
///   synchronous cancel or a drop of a timer waits for its running callback.
/// - While the driver is not run, and after it has been dropped, nothing fires. Timers can still be
///   armed, cancelled and dropped.
/// - In a forked child no timer is due. The descriptor is shared with the parent; dropping the
///   driver closes the child's copy.
pub struct EventLoopDriver<W = DefaultWake> {
    shared: Arc<Shared>,
    base: CpuId,
    wakers: Wakers,
    #[cfg_attr(
        not(linux_platform),
        expect(dead_code, reason = "a callback is called by its device")
    )]
    wakes_by: W,
}

impl<W> fmt::Debug for EventLoopDriver<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoopDriver").field("base", &self.base).finish_non_exhaustive()
    }
}

impl<W> EventLoopDriver<W> {
    pub(crate) fn new(shared: Arc<Shared>, base: CpuId, wakes_by: W) -> EventLoopDriver<W> {
        EventLoopDriver { shared, base, wakers: Wakers::default(), wakes_by }
    }

    /// Returns the driver's base, to [pin](crate::HrTimer::pinned) timers to this loop.
    pub fn base(&self) -> CpuId {
        self.base
    }

    /// Runs the timers that are due. Returns how many fired. Costs a clock reading if nothing is
    /// due; otherwise the callbacks and, with a descriptor, two system calls. If a callback keeps
    /// rearming its timer for the current time, this returns after a few passes.
    pub fn run(&mut self) -> u64 {
        if self.shared.is_forked_child() {
            return 0;
        }
        let is_due = self.device().is_some_and(|device| device.begin_run(self.shared.now()));
        if is_due { self.shared.run_loop(self.base, &mut self.wakers) } else { 0 }
    }

    /// Returns when to call [`run`](Self::run) next; `None` means not before a timer is armed.
    /// After this call, arming a timer for an earlier time calls
    /// [`on_rearm`](crate::Builder::start_in_loop_with).
    pub fn next_event(&mut self) -> Option<Instant> {
        if self.shared.is_forked_child() {
            return None;
        }
        let next = self.device().map_or(Ns::NEVER, LoopDevice::begin_wait);
        (next != Ns::NEVER).then_some(next.into())
    }

    /// Returns how long the loop can wait from now; `None` if there is no limit until a timer is
    /// armed. Round it up, because a loop that wakes early finds no timer due.
    pub fn timeout(&mut self) -> Option<Duration> {
        let next = self.next_event()?;
        Some(next - Instant::from(self.shared.now()))
    }

    /// Returns `true` after all [`Timers`](crate::Timers) and all timers were dropped, so that
    /// nothing will ever be due again. The loop is woken one last time when the last of them is
    /// dropped.
    pub fn is_over(&self) -> bool {
        self.shared.is_stopped()
    }

    /// Runs the due timers as [`run`](Self::run) does, but programs the device even if no timer is
    /// due.
    #[cfg(feature = "tokio-time")]
    pub(crate) fn run_and_rearm(&mut self) -> u64 {
        if self.shared.is_forked_child() {
            return 0;
        }
        if let Some(device) = self.device() {
            device.begin_run(Ns::ZERO);
        }
        self.shared.run_loop(self.base, &mut self.wakers)
    }

    fn device(&self) -> Option<&LoopDevice> {
        self.shared.bases.platform().devices.get(self.base.index())?.as_loop()
    }
}

#[cfg(linux_platform)]
impl AsFd for EventLoopDriver<Arc<OwnedFd>> {
    /// Returns the descriptor, which is readable exactly while [`run`](Self::run) should be called.
    /// It is a timerfd that the driver reads and sets: do not do so yourself.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes_by.as_fd()
    }
}

#[cfg(linux_platform)]
impl AsRawFd for EventLoopDriver<Arc<OwnedFd>> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
