//! Periodic timers, and where in its period each of them fires.
//!
//! A [`Periodic`] expires at its first deadline plus whole periods, for as long as it runs: it does
//! not drift, however late its callback runs. [`Missed`] says what happens to missed periods. A
//! [`Phase`] says where in its period a timer fires: all at multiples of the period, each at its
//! own place, or spread evenly, so that they do not all fire at once.
//!
//! ```
//! use std::time::Duration;
//! use tickless::VirtualTime;
//! use tickless::periodic::{Missed, Phase};
//!
//! let time = VirtualTime::new();
//! let beat = time.timers().periodic(|beat| {
//!     if beat.overruns() > 0 {
//!         // so many periods were missed
//!     }
//! });
//! let beat = beat.phase(Phase::Spread);
//! beat.start(Duration::from_millis(100))?;
//! time.advance(Duration::from_secs(1));
//! assert_eq!(time.timers().stats().total().fired, 10);
//! # Ok::<(), tickless::periodic::PeriodError>(())
//! ```

// A callback asks for its next period when it begins, so whoever stops or restarts the timer
// meanwhile has to be stronger. The base's lock decides between two armings, and the later one
// stands (R9); but it does not know that a cancel was meant for an arming which the callback
// is only about to ask for:
//
// | driver | another thread |
// |---|---|
// | expiry: the callback begins, asks for the next period | |
// | | `cancel`: not pending, running |
// | the callback ends; the timer is armed as it asked | |
//
// So handle and callback share a `Run`: what the timer is expected to do next. A callback
// whose window is not the expected one is left over, and runs nothing.
//
// A phase is chosen when the timer starts, and only then (P2): its first expiry carries it, and
// whoever forwards the timer moves both ends of its window by whole periods (P3).

mod error;
mod run;

use crate::hrtimer::HrTimer;
use crate::timer::cancel_error::CancelError;
use crate::timer::slot::OwnOrLent;
use crate::timers::Timers;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless_core::bases::StartError;
use tickless_core::bases::cancel::Cancel;
use tickless_core::phase::PhaseSlot;
use tickless_core::time::{Instant, Ns, Window};

pub use error::PeriodError;
pub use run::PeriodFired;
pub(crate) use run::{Run, Then, lock, pass};
pub use tickless_core::phase::{CircleView, Phase, PhaseError};

/// What happens to periods that were missed because the system or the callback was late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Missed {
    /// They are skipped, and counted: the next expiry is the first that has not passed. The
    /// phase stays.
    #[default]
    Skip,
    /// Each is made up for at once, one callback after another. The phase stays.
    Burst,
    /// The next expiry is a full period from now. The phase moves.
    Delay,
}

/// A periodic timer with its callback; from [`Timers::periodic`].
///
/// It does not drift: an expiry is computed from the last one's deadline, never from when a
/// callback happened to run.
///
/// # Phases
///
/// Without a phase it first expires one period after it is started. With one, its expiries are at a
/// fixed place in the period: see [`Phase`], and `docs/book/src/phases.md` for what each costs.
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
        F: FnMut(&mut PeriodFired<'_, '_>) + Send + 'static,
    {
        let run = Arc::new(Mutex::new(Run::default()));
        let of_timer = Arc::clone(&run);
        let timer = self.hrtimer(move |fired| {
            let call = |period: &mut PeriodFired<'_, '_>| {
                callback(period);
                Then::GoesOn
            };
            pass(|| lock(&of_timer), fired, call);
        });
        Periodic::around(timer, OwnOrLent::Own(run))
    }
}

impl Periodic {
    /// For a timer whose callback is a [`pass`] over this run.
    pub(crate) fn around(timer: HrTimer, run: OwnOrLent<Mutex<Run>>) -> Periodic {
        Periodic { timer, phase: None, slack: Ns::ZERO, run }
    }

    /// Sets what happens to missed periods; the default is [`Missed::Skip`]. Takes a lock.
    pub fn missed(self, missed: Missed) -> Periodic {
        // In a child that a fork left behind its lock may never be given back.
        if !self.timer.shared().is_forked_child() {
            lock(&self.run).missed = missed;
        }
        self
    }

    /// Gives the timer a phase, which [`start`](Periodic::start) then chooses among all timers with
    /// the same period and a phase, on any base. The timer keeps it until it is cancelled, dropped,
    /// or started with another period; a timer that stops by itself keeps it. With
    /// [`Missed::Delay`] it holds until the first expiry is missed.
    pub fn phase(mut self, phase: Phase) -> Periodic {
        self.phase = Some(phase);
        self
    }

    /// Labels the timer with its owner, for [`Timers::timer_list`](crate::Timers::timer_list) and
    /// [`leaks`](crate::Timers::leaks). Without a label, the callback's type names it. Takes a lock
    /// and may allocate, once.
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
    /// phase it first expires there, at most a period from now; choosing one takes O(log n) among
    /// the n timers of this period and may allocate.
    ///
    /// # Errors
    ///
    /// [`PeriodError`] if the period is zero, the phase is not available with it, or the timer was
    /// shut down.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start(&self, period: Duration) -> Result<(), PeriodError> {
        let shared = self.timer.shared();
        let Some(phase) = self.phase else {
            let first = shared.now() + period;
            return self.start_range(first.into(), period, self.slack.to_duration());
        };
        if shared.is_forked_child() {
            return Err(PeriodError::Start(StartError::Shut));
        }
        let mut run = lock(&self.run);
        let length = Ns::from_duration(period);
        let keeps = |&(by, ref slot): &(Phase, PhaseSlot)| by == phase && slot.period() == length;
        let slot = match run.slot.take() {
            Some(held) if keeps(&held) => held.1,
            held => {
                // Taken before the old one is left: an error leaves a running timer alone.
                let taken = shared.phases().take(length, phase);
                match taken {
                    Ok(slot) => {
                        self.leave(held);
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
        self.begin(&mut run, first, period, self.slack)
    }

    /// Starts the timer at a point in time; `first` fixes the phase, whatever the policy.
    ///
    /// # Errors
    ///
    /// [`PeriodError`] if the period is zero, or the timer was shut down.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_at(&self, first: Instant, period: Duration) -> Result<(), PeriodError> {
        self.start_range(first, period, self.slack.to_duration())
    }

    /// Starts the timer at a point in time, with each expiry late by up to `slack` to share
    /// wakeups.
    ///
    /// # Errors
    ///
    /// [`PeriodError`] if the period is zero, or the timer was shut down.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_range(
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
        let mut run = lock(&self.run);
        self.leave(run.slot.take());
        self.begin(&mut run, first.into(), period, Ns::from_duration(slack))
    }

    /// Under the lock of the run, so that a callback sees both or neither.
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
        self.timer.start_window(window)?;
        run.expected = Some(window);
        Ok(())
    }

    /// How long after each multiple of its period the timer expires; `None` unless it was started
    /// with a phase.
    pub fn phase_offset(&self) -> Option<Duration> {
        let is_forked_child = self.timer.shared().is_forked_child();
        if is_forked_child {
            return None;
        }
        lock(&self.run).slot.as_ref().map(|(_, slot)| slot.phase().to_duration())
    }

    fn leave(&self, slot: Option<(Phase, PhaseSlot)>) {
        let shared = self.timer.shared();
        if let Some((_, slot)) = slot
            && !shared.is_forked_child()
        {
            shared.phases().leave(slot);
        }
    }

    /// Stops the timer without waiting for its callback: one that is running now is the last.
    pub fn cancel(&self) -> Cancel {
        if self.timer.shared().is_forked_child() {
            return Cancel::Idle;
        }
        let mut run = lock(&self.run);
        let was_stopped = run.stop();
        self.leave(run.slot.take());
        let found = self.timer.cancel();
        Self::found(found, was_stopped)
    }

    /// Stops the timer and waits until its callback is not running; see
    /// [`HrTimer::cancel_sync`](crate::HrTimer::cancel_sync).
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        // The callback takes the run's lock when it ends: it must be free by the time of waiting.
        let was_stopped = self.halt();
        Ok(Self::found(self.timer.cancel_sync()?, was_stopped))
    }

    /// Stops its run, not its timer. Says whether it was stopped before.
    pub(crate) fn halt(&self) -> bool {
        if self.timer.shared().is_forked_child() {
            return true;
        }
        let (was_stopped, slot) = {
            let mut run = lock(&self.run);
            (run.stop(), run.slot.take())
        };
        self.leave(slot);
        was_stopped
    }

    #[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
    fn found(found: Cancel, was_stopped: bool) -> Cancel {
        match found {
            // Left over from a callback that the last stop found running.
            Cancel::Pending if was_stopped => Cancel::Idle,
            found => found,
        }
    }

    /// Returns `true` if the timer is running its periods.
    pub fn is_active(&self) -> bool {
        !self.timer.shared().is_forked_child()
            && lock(&self.run).expected.is_some()
            && self.timer.is_active()
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        // In a child that a fork left behind its lock may never be given back; and where a slot was
        // given back, there is none any more.
        if !self.timer.shared().is_forked_child() && !self.timer.is_given_back() {
            let slot = lock(&self.run).slot.take();
            self.leave(slot);
        }
    }
}
