//! A readable list of every pending timer, like Linux's `/proc/timer_list`.

use super::figures::BaseStats;
use crate::platform::clock::ClockSource;
use crate::timer::glue::Task;
use crate::timer::notes::{HeldNotes, Note};
use crate::timer::shared::Shared;
use crate::timers::Timers;
use std::fmt;
use std::panic::Location;
use std::time::Duration;
use tickless_core::bases::pending::{Pending, PendingIn, Walk};
use tickless_core::bases::{FiresIn, HOLDING};
use tickless_core::queues::wheel::Wakes;
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Instant};

/// How many times a base is listed at most. If another thread lists the same base at the same time,
/// the list is incomplete, and is made again.
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
    /// The counters of each base when its timers were listed.
    pub bases: Vec<BaseStats>,
    /// The pending timers by base, and on each base by the time at which they are due.
    pub timers: Vec<ListedTimer>,
    /// Whether all pending timers were listed. Some are perhaps missing if another thread listed
    /// the same timers at the same time.
    pub is_whole: bool,
    policy: Policy,
}

/// One pending timer of a [`TimerList`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListedTimer {
    /// The base that the timer is on.
    pub base: CpuId,
    /// The timer's owner: the label set with [`labelled`](crate::Timeout::labelled). Without a
    /// label, the type of its callback or the kind of future.
    pub label: &'static str,
    /// The deadline with which the timer was armed. The timer does not fire earlier.
    pub soft: Instant,
    /// The end of the window with which the timer was armed; for a timeout, its deadline.
    pub hard: Instant,
    /// When its base will fire it.
    pub due: Instant,
    /// Where it was armed; see [`Builder::note_armings`](crate::Builder::note_armings).
    pub armed_at: Option<&'static Location<'static>>,
    place: PendingIn,
    wakes: Wakes,
}

impl Timers {
    /// Lists every pending timer, base by base, with its owner and when it is due. O(pending) in
    /// time and memory. Locks a base for at most 64 timers at a time, so the list is no snapshot of
    /// a single moment. In a forked child it is empty.
    pub fn timer_list(&self) -> TimerList {
        TimerList::of(&self.shared)
    }
}

impl TimerList {
    /// Lists the timers of all bases. Lists a base again if its list was incomplete.
    pub(crate) fn of(shared: &Shared) -> TimerList {
        let is_forked_child = shared.is_forked_child();
        let count = if is_forked_child { 0 } else { shared.bases.count() as u16 };
        let mut list = TimerList {
            clock: shared.bases.platform().clock.source(),
            now: shared.now().into(),
            bases: Vec::new(),
            timers: Vec::new(),
            is_whole: true,
            policy: shared.bases.settings().policy,
        };
        for base in (0..count).map(CpuId) {
            list.bases.extend(BaseStats::of(shared, base));
            let (mut timers, mut is_whole) = (Vec::new(), false);
            for _ in 0..TRIES {
                (timers, is_whole) = ListedTimer::all_on(shared, base);
                if is_whole {
                    break;
                }
            }
            timers.sort_by_key(|timer: &ListedTimer| timer.due);
            list.timers.append(&mut timers);
            list.is_whole &= is_whole;
        }
        list
    }
}

impl ListedTimer {
    /// Returns the level of the wheel on which a coarse timer waits; `None` for a precise timer,
    /// and for a coarse one that is due.
    pub fn level(&self) -> Option<u8> {
        match self.place {
            PendingIn::Level(level) => Some(level),
            PendingIn::Due | PendingIn::Queue(_) => None,
        }
    }

    /// Returns `true` for a precise timer.
    pub fn is_precise(&self) -> bool {
        matches!(self.place, PendingIn::Queue(_))
    }

    /// Returns `true` if the timer does not wake a driver that is idle; see
    /// [`Timeout::deferrable`](crate::Timeout::deferrable).
    pub fn is_deferrable(&self) -> bool {
        self.wakes == Wakes::No
    }

    /// Returns `true` if the callback runs on the base's expiry thread; see
    /// [`HrTimer::deferred`](crate::HrTimer::deferred).
    pub fn is_deferred(&self) -> bool {
        self.place == PendingIn::Queue(FiresIn::Thread)
    }

    /// Returns the pending timers of a base, and whether the list is complete. It can be incomplete
    /// if another thread lists the base at the same time.
    fn all_on(shared: &Shared, base: CpuId) -> (Vec<ListedTimer>, bool) {
        let (mut walk, mut slice) = (Walk::begin(), Vec::with_capacity(HOLDING));
        let (mut timers, mut is_whole) = (Vec::new(), true);
        while !walk.is_over() {
            // Lock the notes (labels by timer address) before reading the base. Otherwise a timer
            // could be freed, a new one could get its address, and the list would show the label of
            // the new one (X4: an address is no identity).
            let notes = shared.notes.hold();
            is_whole &= shared.bases.walk(base, &mut walk, &mut slice);
            timers.extend(slice.drain(..).map(|found| ListedTimer::of(base, &notes, found)));
        }
        (timers, is_whole)
    }

    fn of(base: CpuId, notes: &HeldNotes<'_>, found: Pending<Task>) -> ListedTimer {
        let Pending { timer, task, window, due, place, wakes } = found;
        let Note { label, armed_at } = notes.of(timer);
        let label = label.unwrap_or_else(|| task.label());
        let (soft, hard) = (window.soft.into(), window.hard.into());
        ListedTimer { base, label, soft, hard, due: due.into(), armed_at, place, wakes }
    }
}

impl fmt::Display for TimerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimerList { clock, now, bases, timers, is_whole, policy } = self;
        write!(f, "timers at {:?}, clock {clock:?}, rearming {policy:?}", *now - Instant::ZERO)?;
        for state in bases {
            let offline = if state.is_online { "" } else { ", offline" };
            let pending = state.coarse + state.precise;
            write!(f, "\n\nbase {}{offline}: {pending} pending, device ", state.base.0)?;
            match state.armed_for {
                Instant::NEVER => write!(f, "not armed")?,
                at => write!(f, "armed for {}", relative(at, *now))?,
            }
            let device = state.device;
            write!(f, ", {} writes, {} events", device.writes, device.events)?;
            let mut timers = timers.iter().filter(|timer| timer.base == state.base).peekable();
            if timers.peek().is_some() {
                let names = ["due", "soft", "hard"].map(|name| format!("{name:>14}"));
                write!(f, "\n{}  {:<11}owner", names.concat(), "in")?;
            }
            for timer in timers {
                let times = [timer.due, timer.soft, timer.hard];
                let times = times.map(|at| format!("{:>14}", relative(at, *now)));
                write!(f, "\n{}  {:<11}{timer}", times.concat(), place(timer.place))?;
            }
        }
        if !is_whole {
            write!(f, "\n\nsome timers are missing: another thread listed them concurrently")?;
        }
        Ok(())
    }
}

/// Formats the label, whether the timer is deferrable, and where it was armed.
impl fmt::Display for ListedTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label)?;
        if self.is_deferrable() {
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
