//! Periodic timers, and their phases.
//!
//! A [`Periodic`] expires at its first deadline plus whole periods: it does not drift, however late
//! its callback runs. [`Missed`] selects what happens to missed periods. A [`Phase`] selects where
//! in its period a timer fires, so that timers with one period all fire at once, or spread evenly.

// An expiry requests the next period before it runs the callback, and the core arms the timer when
// the callback has returned. A concurrent start takes precedence over that request (R9: a restart
// yields to a concurrent arming). A `cancel` while the callback runs does not prevent that arming.
// So the handle and the callback share a `Run`, which stores the window of the expiry that should
// come next, or none after a cancel. An expiry with another window is stale: it does not run the
// callback.
//
// A phase is chosen only when the timer is started (P2: phases are chosen once). The first expiry
// has that phase, and each later one is a whole number of periods after it (P3: the phase stays).

mod error;
mod run;

use crate::events;
use crate::hrtimer::HrTimer;
use crate::platform::locked::locked;
use crate::timer::cancel_error::CancelError;
use crate::timer::fired::Fired;
use crate::timer::slot::OwnOrLent;
use crate::timers::Timers;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{StartError, Started};
use tickless_core::phase::PhaseSlot;
use tickless_core::time::{Instant, Ns, Window};

pub use error::PeriodError;
pub(crate) use run::{Run, pass};
pub use tickless_core::phase::Phase;

/// What happens to periods that were missed because the system or the callback was late.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Missed {
    /// Missed periods are counted, but the callback does not run for them: the next expiry is the
    /// first that is not in the past. The timer stays in phase.
    #[default]
    Skip,
    /// The callback runs once for each missed period, without a pause in between. The timer stays
    /// in phase.
    Burst,
    /// The next expiry is a full period after the late one was handled, so the timer's phase
    /// changes.
    Delay,
}

/// A periodic timer with its callback; from [`Timers::periodic`].
///
/// It does not drift: each deadline is computed from the previous deadline, not from the time at
/// which a callback ran.
///
/// # Phases
///
/// Without a phase, the timer first expires one period after it is started. With one, it expires at
/// a fixed place in the period: see [`Phase`], and `docs/book/src/phases.md` for the cost of each.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
/// use tickless::periodic::Phase;
///
/// let time = VirtualTime::new();
/// let refill = || time.timers().periodic(|_| {}).phase(Phase::Spread);
/// let (one, two) = (refill(), refill());
/// one.start(Duration::from_millis(100))?;
/// two.start(Duration::from_millis(100))?;
/// let (one, two) = (one.phase_offset().unwrap(), two.phase_offset().unwrap());
/// assert_eq!(one.max(two) - one.min(two), Duration::from_millis(50));
/// # Ok::<(), tickless::periodic::PeriodError>(())
/// ```
#[must_use = "dropping a timer cancels it"]
#[derive(Debug)]
pub struct Periodic {
    pub(crate) timer: HrTimer,
    phase: Option<Phase>,
    slack: Ns,
    run: OwnOrLent<Mutex<Run>>,
}

impl Timers {
    /// Creates a periodic precise timer, not started. Allocates once or twice.
    pub fn periodic<F>(&self, mut callback: F) -> Periodic
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        let run = Arc::new(Mutex::new(Run::default()));
        let shared_run = Arc::clone(&run);
        let timer = self.hrtimer(move |fired| {
            pass(|| Some(locked(&shared_run)), fired, &mut callback);
        });
        Periodic::around(timer, OwnOrLent::Own(run))
    }
}

impl Periodic {
    /// Makes a periodic timer from a precise one, whose callback must call [`pass`] with `run`.
    pub(crate) fn around(timer: HrTimer, run: OwnOrLent<Mutex<Run>>) -> Periodic {
        Periodic { timer, phase: None, slack: Ns::ZERO, run }
    }

    /// Sets what happens to missed periods; the default is [`Missed::Skip`]. Takes a lock.
    pub fn missed(self, missed: Missed) -> Periodic {
        self.read(|run| run.missed = missed);
        self
    }

    /// Gives the timer a phase: [`start`](Periodic::start) chooses when in the period it expires,
    /// with regard to all timers that have this period and a phase, on any base. The timer keeps
    /// this place until it is cancelled, dropped, or started with another period; if its callback
    /// stops the timer, it keeps the place. With [`Missed::Delay`] it expires at another place
    /// after it has missed an expiry.
    pub fn phase(mut self, phase: Phase) -> Periodic {
        self.phase = Some(phase);
        self
    }

    /// Labels the timer; see [`HrTimer::labelled`](crate::HrTimer::labelled).
    pub fn labelled(self, label: &'static str) -> Periodic {
        self.timer.set_label(label);
        self
    }

    /// Lets each expiry be late by up to `slack`, to share wakeups.
    pub fn slack(mut self, slack: Duration) -> Periodic {
        self.slack = Ns::from_duration(slack);
        self
    }

    /// Starts or restarts the timer: it expires one period from now, then every period. With a
    /// phase it first expires at its place in the period, at most a period from now. Choosing the
    /// place takes O(log n) for the n timers of this period, and can allocate.
    ///
    /// # Errors
    ///
    /// [`PeriodError`] if the period is zero, the phase is not available with this period, or the
    /// timer was shut down.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start(&self, period: Duration) -> Result<(), PeriodError> {
        let shared = self.timer.shared();
        let Some(phase) = self.phase else {
            let first = shared.now() + period;
            return self.start_with_slack(first.into(), period, self.slack.to_duration());
        };
        if shared.is_forked_child() {
            return Err(PeriodError::Start(StartError::Shut));
        }
        events::after(|| self.start_in_phase(phase, period))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn start_in_phase(&self, phase: Phase, period: Duration) -> Result<(), PeriodError> {
        let shared = self.timer.shared();
        let mut run = locked(&self.run);
        let length = Ns::from_duration(period);
        let keeps = |&(by, ref slot): &(Phase, PhaseSlot)| by == phase && slot.period() == length;
        let slot = match run.slot.take() {
            Some(held) if keeps(&held) => held.1,
            held => {
                // Take the new place in the period before leaving the old one: an error must not
                // change a running timer.
                let taken = shared.phases().take(length, phase);
                match taken {
                    Ok(slot) => {
                        self.leave_phase(held);
                        slot
                    }
                    Err(error) => {
                        run.slot = held;
                        return Err(error.into());
                    }
                }
            }
        };
        let first = slot.first_after(shared.now());
        run.slot = Some((phase, slot));
        let begun = self.begin(&mut run, first, period, self.slack);
        if run.expected.is_none() {
            self.leave_phase(run.slot.take());
        }
        begun
    }

    /// Starts or restarts the timer with its first expiry at `first`, then every period. This
    /// ignores a phase that was set.
    ///
    /// # Errors
    ///
    /// [`PeriodError`] if the period is zero, or the timer was shut down.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_at(&self, first: Instant, period: Duration) -> Result<(), PeriodError> {
        self.start_with_slack(first, period, self.slack.to_duration())
    }

    /// Starts the timer at a given time, and frees its phase if it has one.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn start_with_slack(
        &self,
        first: Instant,
        period: Duration,
        slack: Duration,
    ) -> Result<(), PeriodError> {
        if period.is_zero() {
            return Err(PeriodError::Zero);
        }
        if self.timer.shared().is_forked_child() {
            return Err(PeriodError::Start(StartError::Shut));
        }
        events::after(|| {
            let mut run = locked(&self.run);
            self.leave_phase(run.slot.take());
            self.begin(&mut run, first.to_ns(), period, Ns::from_duration(slack))
        })
    }

    /// Arms the timer and stores the window in which it should expire next, unless a synchronous
    /// cancel is in progress, which cancels this start. The caller holds the lock of the run: an
    /// expiry must not see the arming without the window.
    #[cfg_attr(debug_assertions, track_caller)]
    fn begin(
        &self,
        run: &mut Run,
        first: Ns,
        period: Duration,
        slack: Ns,
    ) -> Result<(), PeriodError> {
        let window = Window::new(first, first.after(slack));
        run.turn += 1;
        run.period = Ns::from_duration(period);
        run.expected = None;
        if run.cancels == 0 && self.timer.start_window(window)? != Started::Cancelled {
            run.expected = Some(window);
        }
        Ok(())
    }

    /// Returns how long after each multiple of its period on the timers' clock the timer expires;
    /// `None` unless it was started with a phase.
    pub fn phase_offset(&self) -> Option<Duration> {
        let offset = |run: &mut Run| run.slot.as_ref().map(|(_, slot)| slot.phase().to_duration());
        self.read(offset).flatten()
    }

    /// Frees a phase. Does nothing in a forked child, which must not wait for locks.
    fn leave_phase(&self, slot: Option<(Phase, PhaseSlot)>) {
        let shared = self.timer.shared();
        if let Some((_, slot)) = slot.filter(|_| !shared.is_forked_child()) {
            shared.phases().leave(slot);
        }
    }

    /// Stops the timer without waiting for its callback. If the callback is running now, that is
    /// its last run.
    pub fn cancel(&self) -> Cancel {
        self.cancel_if(|_| true)
    }

    /// Stops the timer, unless its callback is running. In that case the call changes nothing and
    /// returns [`Cancel::Running`].
    pub fn try_cancel(&self) -> Cancel {
        self.cancel_if(|run| run.running.is_none())
    }

    /// Stops the timer if `may` allows it in its current state. Does not wait.
    fn cancel_if(&self, may: impl FnOnce(&Run) -> bool) -> Cancel {
        if self.timer.shared().is_forked_child() {
            return Cancel::Idle;
        }
        events::after(|| {
            let mut run = locked(&self.run);
            if !may(&run) {
                return Cancel::Running;
            }
            let found = run.stop();
            self.leave_phase(run.slot.take());
            self.timer.cancel();
            found
        })
    }

    /// Stops the timer and waits until its callback is not running. A start during this call is
    /// cancelled, too.
    ///
    /// # Errors
    ///
    /// Fails as [`HrTimer::cancel_sync`](crate::HrTimer::cancel_sync) does.
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.cancel_and(|| self.timer.cancel_sync())
    }

    /// Stops the timer for good and waits: every later start fails with [`StartError::Shut`].
    ///
    /// # Errors
    ///
    /// Fails as [`HrTimer::shutdown_sync`](crate::HrTimer::shutdown_sync) does.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.cancel_and(|| self.timer.shutdown_sync())
    }

    /// Stops the timer, and calls `wait`, which waits for the callback. Starts fail until then. The
    /// run is not locked during the wait, because the end of the callback locks it.
    fn cancel_and(
        &self,
        wait: impl FnOnce() -> Result<Cancel, CancelError>,
    ) -> Result<Cancel, CancelError> {
        struct Cancelling<'a>(&'a Periodic);
        impl Drop for Cancelling<'_> {
            fn drop(&mut self) {
                self.0.read(|run| run.cancels -= 1);
            }
        }
        let begin = |run: &mut Run| {
            run.cancels += 1;
            (run.stop(), run.slot.take())
        };
        let Some((found, slot)) = self.read(begin) else { return wait() };
        let _cancelling = Cancelling(self);
        self.leave_phase(slot);
        wait().map(|_| found)
    }

    /// Stops the timer: an expiry that comes later does not run the callback.
    pub(crate) fn halt(&self) {
        let slot = self.read(|run| {
            run.stop();
            run.slot.take()
        });
        self.leave_phase(slot.flatten());
    }

    /// Passes the locked run to `read`. Returns `None` in a forked child, where a thread of the
    /// parent has perhaps left it locked.
    fn read<R>(&self, read: impl FnOnce(&mut Run) -> R) -> Option<R> {
        (!self.timer.shared().is_forked_child()).then(|| read(&mut locked(&self.run)))
    }

    /// Returns `true` if the next expiry is armed, which it is not while the callback runs. The
    /// answer can be out of date at once.
    pub fn is_pending(&self) -> bool {
        self.read(|run| run.expected.is_some()).unwrap_or(false)
    }

    /// Returns `true` if the timer was started and has not been stopped since.
    pub fn is_active(&self) -> bool {
        let is_active = |run: &mut Run| run.expected.is_some() || run.running == Some(run.turn);
        self.read(is_active).unwrap_or(false)
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        // Do not lock the run after `give_back`, when its memory is gone.
        if !self.timer.is_given_back() {
            self.leave_phase(self.read(|run| run.slot.take()).flatten());
        }
    }
}
