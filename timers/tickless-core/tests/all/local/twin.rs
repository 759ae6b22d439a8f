//! The naive twin of local timers: a flat list.
//!
//! Coarse timers that were armed once since they last fired, or all if push-outs are eager, are
//! exact: the twin computes when and in which order they fire. The others are loose: they fire at
//! or after their deadline, within the bound on lateness, in any order.

use crate::support::REACHES;
use crate::support::timers::Family;
use std::cmp::Reverse;
use tickless_core::queues::wheel::PushOut;
use tickless_core::time::{Ns, Window};

pub struct Twin {
    tick: u64,
    push_out: PushOut,
    pub now: Ns,
    pub timers: Vec<Option<TwinTimer>>,
    sequence: u64,
    pass: u64,
    /// The time of the last pass over precise timers, and whether it has fired all that were due.
    precise: Option<(Ns, bool)>,
}

#[derive(Clone, Copy, Debug)]
pub struct TwinTimer {
    pub family: Family,
    pub pending: Option<Pending>,
    /// Whether its number may be on a chain, from an earlier arming.
    is_left: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    pub window: Window,
    sequence: u64,
    pass: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Queued,
    Late,
    /// Due at this tick, on this level.
    Exact {
        due: u64,
        level: usize,
    },
    /// Armed for the past: behind all timers that were due by this tick.
    Overdue {
        behind: u64,
    },
    Loose {
        latest: Ns,
    },
}

impl Twin {
    pub fn new(tick: Ns, push_out: PushOut, timers: usize, now: Ns) -> Twin {
        let timers = vec![None; timers];
        Twin { tick: tick.0, push_out, now, timers, sequence: 0, pass: 0, precise: None }
    }

    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// Returns whether a timer is pending beyond the last level, for which the next event is early.
    pub fn has_far(&self) -> bool {
        let reach = (self.now.0 / self.tick).saturating_add(REACHES[8]).saturating_mul(self.tick);
        self.pending().any(|(id, pending)| {
            self.timers[id].is_some_and(|timer| timer.family == Family::Coarse)
                && pending.window.soft.0 >= reach
        })
    }

    pub fn is_eager(&self) -> bool {
        self.push_out == PushOut::Eager
    }

    pub fn has_loose(&self) -> bool {
        self.pending().any(|(_, pending)| matches!(pending.place, Place::Loose { .. }))
    }

    pub fn insert(&mut self, id: usize, family: Family) {
        self.timers[id] = Some(TwinTimer { family, pending: None, is_left: false });
    }

    pub fn remove(&mut self, id: usize) {
        self.timers[id] = None;
    }

    pub fn is_pending(&self, id: usize) -> bool {
        self.timers[id].is_some_and(|timer| timer.pending.is_some())
    }

    pub fn pending(&self) -> impl Iterator<Item = (usize, Pending)> {
        let timers = self.timers.iter().enumerate();
        timers.filter_map(|(id, timer)| Some((id, (*timer)?.pending?)))
    }

    pub fn cancel(&mut self, id: usize) {
        if let Some(timer) = &mut self.timers[id] {
            timer.pending = None;
        }
    }

    pub fn start(&mut self, id: usize, window: Window) {
        self.sequence += 1;
        let Some(TwinTimer { family, is_left, .. }) = self.timers[id] else { return };
        let place = match family {
            Family::Precise => match self.precise {
                Some((seen, _)) if window.soft <= seen => Place::Late,
                _ => Place::Queued,
            },
            Family::Coarse if is_left && self.push_out == PushOut::Lazy => self.loose(window.soft),
            Family::Coarse => self.exact(window.soft),
        };
        let window = match family {
            Family::Precise => Window::new(window.soft, window.hard),
            Family::Coarse => Window::at(window.soft),
        };
        let pending = Some(Pending { window, sequence: self.sequence, pass: self.pass, place });
        self.timers[id] = Some(TwinTimer { family, pending, is_left: true });
    }

    /// Applies the bound on lateness: 1/7.7 of the distance plus a tick.
    fn loose(&self, deadline: Ns) -> Place {
        let late = u128::from(deadline.since(self.now).0) * 10 / 77 + u128::from(self.tick);
        let latest = u64::try_from(u128::from(deadline.0.max(self.now.0)) + late);
        Place::Loose { latest: Ns(latest.unwrap_or(u64::MAX)) }
    }

    fn exact(&self, deadline: Ns) -> Place {
        let clock = self.now.0 / self.tick;
        let due = deadline.0.div_ceil(self.tick);
        if due <= clock {
            return Place::Overdue { behind: clock };
        }
        match REACHES.iter().position(|&reach| due - clock <= reach) {
            Some(level) => Place::Exact { due: due.next_multiple_of(1 << (3 * level)), level },
            None => self.loose(deadline),
        }
    }

    pub fn begin(&mut self, now: Ns) {
        self.now = self.now.max(now);
        self.pass += 1;
        let behind = match (self.precise, self.first_precise()) {
            (Some((seen, false)), Some((_, first))) if first.window.soft <= seen => seen,
            _ => Ns::ZERO,
        };
        let has_precise =
            |timer: &Option<TwinTimer>| timer.is_some_and(|timer| timer.family == Family::Precise);
        if !self.timers.iter().any(has_precise) {
            return;
        }
        self.precise = Some((self.now, false));
        let late = self.pending().filter(|(_, pending)| pending.place == Place::Late);
        let mut late: Vec<_> =
            late.map(|(id, pending)| (pending.window.hard, pending.sequence, id)).collect();
        late.sort();
        for (hard, _, id) in late {
            self.sequence += 1;
            if let Some(pending) = self.timers[id].as_mut().and_then(|timer| timer.pending.as_mut())
            {
                pending.place = Place::Queued;
                pending.sequence = self.sequence;
                pending.window.hard = hard.max(behind);
            }
        }
    }

    fn first_precise(&self) -> Option<(usize, Pending)> {
        let queued = self.pending().filter(|(_, pending)| pending.place == Place::Queued);
        queued.min_by_key(|(_, pending)| (pending.window.hard, pending.sequence))
    }

    /// Returns the next timer that fires in this advance. A loose timer is next if it is `seen`.
    pub fn next(&mut self, seen: Option<usize>) -> Option<usize> {
        let id = self.due(seen)?;
        if let Some(timer) = &mut self.timers[id] {
            (timer.pending, timer.is_left) = (None, false);
        }
        Some(id)
    }

    fn due(&mut self, seen: Option<usize>) -> Option<usize> {
        if let Some((now, over)) = &mut self.precise
            && !*over
        {
            let now = *now;
            match self.first_precise() {
                Some((id, first)) if first.window.soft <= now => return Some(id),
                _ => self.precise = Some((now, true)),
            }
        }
        let may_fire = |id: usize| {
            let pending = self.timers[id].and_then(|timer| timer.pending);
            pending.is_some_and(|pending| {
                matches!(pending.place, Place::Loose { .. }) && pending.window.soft <= self.now
            })
        };
        if let Some(seen) = seen.filter(|&seen| may_fire(seen)) {
            return Some(seen);
        }
        let target = self.now.0 / self.tick;
        let due = self.pending().filter_map(|(id, pending)| match pending.place {
            Place::Exact { due, level } if due <= target => {
                // A timer armed for the past waits behind all that were due when it was armed.
                Some((due, Reverse(level), pending.sequence, id))
            }
            _ => None,
        });
        let overdue = self.pending().filter_map(|(id, pending)| match pending.place {
            Place::Overdue { behind } if pending.pass < self.pass => {
                Some((pending.sequence, behind, id))
            }
            _ => None,
        });
        match (due.min(), overdue.min()) {
            (Some((due, .., id)), Some((_, behind, _))) if due <= behind => Some(id),
            (_, Some((.., id))) => Some(id),
            (first, None) => first.map(|(.., id)| id),
        }
    }

    /// Ends an advance, which may have left due timers; `precise_done`: all precise ones fired.
    pub fn end(&mut self, precise_done: bool) {
        if let Some((_, over)) = &mut self.precise {
            *over |= precise_done;
        }
    }

    /// Returns a timer that should have fired by now.
    pub fn is_late(&self) -> Option<usize> {
        let late = self.pending().find(|(_, pending)| match pending.place {
            Place::Loose { latest } => pending.pass < self.pass && latest <= self.now,
            _ => false,
        });
        late.map(|(id, _)| id)
    }

    /// Returns the earliest and the latest allowed next event; both are equal if it is exact.
    pub fn next_event(&self) -> (Ns, Ns) {
        let mut between = (Ns::NEVER, Ns::NEVER);
        for (_, pending) in self.pending() {
            let (early, late) = match pending.place {
                Place::Queued | Place::Late => (pending.window.hard, pending.window.hard),
                Place::Exact { due, .. } => {
                    let due = Ns(due.saturating_mul(self.tick));
                    (due, due)
                }
                Place::Overdue { .. } => (self.now, self.now),
                Place::Loose { latest } => (pending.window.soft, latest),
            };
            between = (between.0.min(early), between.1.min(late));
        }
        between
    }
}
