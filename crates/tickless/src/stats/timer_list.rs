//! A readable list of every pending timer, like Linux's `/proc/timer_list`.

use crate::platform::clock::ClockSource;
use crate::timer::glue::Task;
use crate::timer::notes::{HeldNotes, Note};
use crate::timer::shared::Shared;
use crate::timers::Timers;
use std::fmt;
use std::panic::Location;
use std::time::Duration;
use tickless_core::bases::pending::{Pending, PendingIn, Walk};
use tickless_core::bases::{BaseView, FiresIn, HOLDING};
use tickless_core::queues::wheel::Wakes;
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Instant};

/// How often a base is listed at most, if another thread lists it concurrently.
const TRIES: u32 = 4;

/// All pending timers; from [`Timers::timer_list`](crate::Timers::timer_list). Displays with one
/// line for each timer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TimerList {
    /// The clock source of the timers.
    pub clock: ClockSource,
    /// When listing began.
    pub now: Instant,
    /// The policy by which the bases' event devices are rearmed.
    pub policy: Policy,
    /// The bases.
    pub bases: Vec<ListedBase>,
}

/// One base of a [`TimerList`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListedBase {
    /// The number of the base.
    pub base: CpuId,
    /// Its state when it was listed.
    pub view: BaseView,
    /// Its pending timers, by the time at which they are due.
    pub timers: Vec<ListedTimer>,
    /// Whether all pending timers were listed. Some may be missing if another thread listed the
    /// same base concurrently.
    pub is_whole: bool,
}

/// One pending timer of a [`TimerList`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListedTimer {
    /// Its owner: the label set with [`labelled`](crate::Timeout::labelled), or without a label the
    /// type of its callback or the kind of future.
    pub label: &'static str,
    /// The deadline with which it was armed. It does not fire earlier.
    pub soft: Instant,
    /// The end of the window with which it was armed; for a timeout, the deadline.
    pub hard: Instant,
    /// When its base will fire it.
    pub due: Instant,
    /// Its place on the base: a level of the wheel for a coarse timer, a queue for a precise one,
    /// or due.
    pub place: PendingIn,
    /// Whether it wakes an idle base; [`Wakes::No`] for a deferrable timer.
    pub wakes: Wakes,
    /// Where it was armed, if that was recorded; see [`Builder::note_armings`].
    ///
    /// [`Builder::note_armings`]: crate::Builder::note_armings
    pub armed_at: Option<&'static Location<'static>>,
}

impl Timers {
    /// Lists every pending timer, base by base, with its owner and when it is due. For diagnosis:
    /// O(pending) in time and memory.
    ///
    /// Locks a base for at most 64 timers at a time, so the list is no snapshot of a single moment.
    /// In a forked child the list of bases is empty.
    pub fn timer_list(&self) -> TimerList {
        TimerList::of(&self.shared)
    }
}

impl TimerList {
    pub(crate) fn of(shared: &Shared) -> TimerList {
        let is_forked_child = shared.is_forked_child();
        let count = if is_forked_child { 0 } else { shared.bases.count() as u16 };
        let base = |base| ListedBase::of(shared, CpuId(base));
        TimerList {
            clock: shared.bases.platform().clock.source(),
            now: shared.now().into(),
            policy: shared.bases.settings().policy,
            bases: (0..count).filter_map(base).collect(),
        }
    }

    /// Returns the timers of all bases.
    pub fn timers(&self) -> impl Iterator<Item = &ListedTimer> {
        self.bases.iter().flat_map(|base| &base.timers)
    }
}

impl ListedBase {
    fn of(shared: &Shared, base: CpuId) -> Option<ListedBase> {
        let view = shared.bases.view(base)?;
        let (mut timers, mut is_whole) = (Vec::new(), false);
        for _ in 0..TRIES {
            (timers, is_whole) = ListedTimer::all_on(shared, base);
            if is_whole {
                break;
            }
        }
        timers.sort_by_key(|timer: &ListedTimer| timer.due);
        Some(ListedBase { base, view, timers, is_whole })
    }
}

impl ListedTimer {
    /// Returns the pending timers of a base, and whether the list is complete: it may not be if
    /// another thread lists the base concurrently.
    fn all_on(shared: &Shared, base: CpuId) -> (Vec<ListedTimer>, bool) {
        let (mut walk, mut slice) = (Walk::begin(), Vec::with_capacity(HOLDING));
        let (mut timers, mut is_whole) = (Vec::new(), true);
        while !walk.is_over() {
            // X4 (an address is no identity): hold the notes before reading the base, so that they
            // belong to the timers found, and not to later timers at their addresses.
            let notes = shared.notes.hold();
            is_whole &= shared.bases.walk(base, &mut walk, &mut slice);
            timers.extend(slice.drain(..).map(|found| ListedTimer::of(&notes, found)));
        }
        (timers, is_whole)
    }

    fn of(notes: &HeldNotes<'_>, found: Pending<Task>) -> ListedTimer {
        let Pending { timer, task, window, due, place, wakes } = found;
        let Note { label, armed_at } = notes.of(timer);
        let label = label.unwrap_or_else(|| task.label());
        let (soft, hard) = (window.soft.into(), window.hard.into());
        ListedTimer { label, soft, hard, due: due.into(), place, wakes, armed_at }
    }
}

impl fmt::Display for TimerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimerList { clock, now, policy, bases } = self;
        write!(f, "timers at {:?}, clock {clock:?}, rearming {policy:?}", *now - Instant::ZERO)?;
        for ListedBase { base, view, timers, is_whole } in bases {
            let state = if view.is_online { "" } else { ", offline" };
            let pending = view.coarse + view.precise;
            write!(f, "\n\nbase {}{state}: {pending} pending, device ", base.0)?;
            match view.armed {
                Instant::NEVER => write!(f, "not armed")?,
                at => write!(f, "armed for {}", relative(at, *now))?,
            }
            let device = view.device;
            write!(f, ", {} writes, {} events", device.writes, device.events)?;
            if !timers.is_empty() {
                let names = ["due", "soft", "hard"].map(|name| format!("{name:>14}"));
                write!(f, "\n{}  {:<11}owner", names.concat(), "in")?;
            }
            for timer in timers {
                let times = [timer.due, timer.soft, timer.hard];
                let times = times.map(|at| format!("{:>14}", relative(at, *now)));
                write!(f, "\n{}  {:<11}{timer}", times.concat(), place(timer.place))?;
            }
            if !is_whole {
                write!(f, "\n... and {} more or so", pending.saturating_sub(timers.len()))?;
            }
        }
        Ok(())
    }
}

/// Formats the label, whether the timer is deferrable, and where it was armed.
impl fmt::Display for ListedTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label)?;
        if self.wakes == Wakes::No {
            f.write_str(", deferrable")?;
        }
        match self.armed_at {
            Some(at) => write!(f, ", armed at {at}"),
            None => Ok(()),
        }
    }
}

fn place(place: PendingIn) -> String {
    match place {
        PendingIn::Level(level) => format!("level {level}"),
        PendingIn::Due => "due".into(),
        PendingIn::Queue(FiresIn::Handler) => "queue".into(),
        PendingIn::Queue(FiresIn::Thread) => "deferred".into(),
    }
}

/// Formats a time relative to `now`, to the microsecond.
pub(super) fn relative(at: Instant, now: Instant) -> String {
    let to_us = |by: Duration| Duration::from_micros(by.as_micros() as u64);
    if at == Instant::NEVER {
        "never".into()
    } else if at >= now {
        format!("+{:?}", to_us(at - now))
    } else {
        format!("-{:?}", to_us(now - at))
    }
}
