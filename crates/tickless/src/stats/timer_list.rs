//! Every pending timer in a list for people, as a kernel gives it in `/proc/timer_list`.

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

/// How often listing a base starts again because another thread lists it at the same time.
const TRIES: u32 = 4;

/// What is pending; from [`Timers::timer_list`](crate::Timers::timer_list). Displays with a line
/// for each timer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TimerList {
    /// Where the time comes from.
    pub clock: ClockSource,
    /// When listing began.
    pub now: Instant,
    /// When the bases' event devices are rearmed.
    pub policy: Policy,
    /// One for each base.
    pub bases: Vec<ListedBase>,
}

/// One base of a [`TimerList`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListedBase {
    /// Which base it is.
    pub base: CpuId,
    /// Its state when it was listed.
    pub view: BaseView,
    /// Its pending timers, the next one first.
    pub timers: Vec<ListedTimer>,
    /// Whether all of them were listed. Some may be left out while another thread lists the same
    /// base.
    pub is_whole: bool,
}

/// One pending timer of a [`TimerList`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListedTimer {
    /// Its owner: the label set with [`labelled`](crate::Timeout::labelled), else the type of its
    /// callback, else the future.
    pub label: &'static str,
    /// The deadline it was armed with: it does not fire earlier.
    pub soft: Instant,
    /// The end of the window it was armed with; for a timeout this is the deadline.
    pub hard: Instant,
    /// When its base fires it.
    pub due: Instant,
    /// Where on its base it is; this also says whether it is coarse or precise.
    pub place: PendingIn,
    /// Whether it is deferrable.
    pub wakes: Wakes,
    /// Where it was armed, if that was recorded; see [`Builder::note_armings`].
    ///
    /// [`Builder::note_armings`]: crate::Builder::note_armings
    pub armed_at: Option<&'static Location<'static>>,
}

impl Timers {
    /// Lists every pending timer, base by base, with its owner and when it is due. Meant for people
    /// to read: O(pending) in time and memory.
    ///
    /// Locks a base for at most 64 timers at a time, so the list is not of a single moment. In a
    /// forked child there are no bases.
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

    /// The timers of all bases.
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
    /// What is pending on a base, and whether that is all: no other thread may list it meanwhile.
    fn all_on(shared: &Shared, base: CpuId) -> (Vec<ListedTimer>, bool) {
        let (mut walk, mut slice) = (Walk::begin(), Vec::with_capacity(HOLDING));
        let (mut timers, mut is_whole) = (Vec::new(), true);
        while !walk.is_over() {
            // X4: held before the base is read, so the notes are those of the timers found.
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

/// Whose it is, and what is special about it.
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

/// A point in time as seen from `now`, to the microsecond.
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
