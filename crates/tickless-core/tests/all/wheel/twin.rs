//! The naive twin of the wheel: sorted vectors, and plain division instead of shifts. It shares the
//! table of the levels' reaches with the wheel's documentation, and no code with the wheel.

use crate::support::REACHES;
use std::cmp::Reverse;
use std::ops::RangeInclusive;
use tickless_core::time::Ns;

/// A pending timer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: usize,
    pub(crate) deadline: u64,
    pub(crate) deferrable: bool,
    /// The tick at which it comes due.
    pub(crate) expiry: u64,
    level: usize,
    /// The eighth of its granule with the deadline.
    eighth: u64,
    seq: u64,
    /// Whether the deadline is beyond the wheel's reach: it comes due to be placed again.
    clamped: bool,
}

impl Entry {
    fn key(&self) -> (u64, Reverse<usize>, u64, u64) {
        (self.expiry, Reverse(self.level), self.eighth, self.seq)
    }
}

/// A timer that was pushed out without the wheel. The twin does not know when the wheel moves it,
/// nor its order among timers of the same instant.
struct Loose {
    entry: Entry,
    /// The latest tick at which it fires: as if it had been armed when its old bucket came due.
    latest: u64,
    /// Whether it was armed for the past and waits for the next advance.
    waits: bool,
}

pub(crate) struct Twin {
    tick: u64,
    pub(crate) clk: u64,
    pub(crate) target: u64,
    seq: u64,
    /// Not due yet, sorted by [`Entry::key`].
    armed: Vec<Entry>,
    /// To be popped, in this order.
    due: Vec<Entry>,
    /// To be popped from the next advance on, in this order.
    overdue: Vec<Entry>,
    loose: Vec<Loose>,
    /// Whether the wheel's position in the pass is unknown, because it may have moved timers or
    /// not.
    adrift: bool,
}

impl Twin {
    pub(crate) fn new(tick: Ns, now: u64) -> Twin {
        let clk = now / tick.0;
        Twin {
            tick: tick.0,
            clk,
            target: clk,
            seq: 0,
            armed: vec![],
            due: vec![],
            overdue: vec![],
            loose: vec![],
            adrift: false,
        }
    }

    /// Arms a timer, pending or not. Returns when it comes due.
    pub(crate) fn arm(&mut self, id: usize, deadline: u64, now: u64, deferrable: bool) -> Ns {
        self.forward(now / self.tick);
        self.remove(id);
        let entry = self.place(id, deadline, deferrable);
        let wakes = self.wakes_at(&entry);
        self.insert(entry);
        wakes
    }

    /// Pushes a pending timer out without the wheel.
    pub(crate) fn push_out(&mut self, id: usize, deadline: u64) {
        let waits = self.overdue.iter().any(|entry| entry.id == id);
        let waits = waits || self.loose.iter().any(|loose| loose.entry.id == id && loose.waits);
        let mut entry = self.remove(id).expect("it is pending");
        entry.deadline = deadline;
        let tick = deadline.div_ceil(self.tick);
        let beyond = tick.saturating_sub(entry.expiry);
        let latest = if beyond == 0 { entry.expiry } else { tick + beyond * 33 / 256 + 1 };
        self.loose.push(Loose { entry, latest, waits });
    }

    pub(crate) fn remove(&mut self, id: usize) -> Option<Entry> {
        for list in [&mut self.armed, &mut self.due, &mut self.overdue] {
            if let Some(at) = list.iter().position(|entry| entry.id == id) {
                return Some(list.remove(at));
            }
        }
        let at = self.loose.iter().position(|loose| loose.entry.id == id)?;
        Some(self.loose.remove(at).entry)
    }

    pub(crate) fn advance(&mut self, now: u64) {
        self.target = self.target.max(now / self.tick).max(self.clk);
        self.due.append(&mut self.overdue);
        self.loose.iter_mut().for_each(|loose| loose.waits = false);
    }

    /// Pops in exact order.
    pub(crate) fn pop(&mut self, budget: &mut usize) -> Option<Entry> {
        while *budget > 0 {
            if self.due.is_empty() && !self.step() {
                return None;
            }
            if self.due.is_empty() {
                continue;
            }
            *budget -= 1;
            let entry = self.due.remove(0);
            if let Some(rest) = self.rest(&entry) {
                self.insert(rest);
            } else {
                return Some(entry);
            }
        }
        None
    }

    /// Follows a wheel that has popped `id`, or returns why that is wrong.
    pub(crate) fn popped(&mut self, id: usize) -> Result<Entry, String> {
        if let Some(at) = self.loose.iter().position(|loose| loose.entry.id == id) {
            let Loose { entry, waits, .. } = self.loose.remove(at);
            let early = entry.deadline.div_ceil(self.tick) > self.target;
            let wrong = early || waits;
            return if wrong { Err(format!("{entry:?} popped too soon")) } else { Ok(entry) };
        }
        loop {
            if let Some(at) = self.due.iter().position(|entry| entry.id == id) {
                let entry = self.due.remove(at);
                return match self.due[..at].first() {
                    Some(other) if !self.adrift => {
                        Err(format!("{entry:?} popped before {other:?}"))
                    }
                    _ => Ok(entry),
                };
            }
            if let (Some(other), false) = (self.due.first(), self.adrift) {
                return Err(format!("{id} popped while {other:?} was due"));
            }
            if !self.step() {
                return Err(format!("{id} popped in the wrong pass"));
            }
        }
    }

    /// Checks that the pass has ended, as the wheel reports.
    pub(crate) fn drained(&mut self) -> Result<(), String> {
        loop {
            if let Some(entry) = self.due.first() {
                return Err(format!("{entry:?} was not popped in its pass"));
            }
            if !self.step() {
                self.adrift = false;
                let left = |loose: &&Loose| !loose.waits && loose.latest <= self.target;
                return match self.loose.iter().find(left) {
                    Some(Loose { entry, .. }) => Err(format!("{entry:?} was left in its pass")),
                    None => Ok(()),
                };
            }
        }
    }

    /// Returns a timer that should have fired by now.
    pub(crate) fn not_fired(&self) -> Option<&Entry> {
        let is_left = |entry: &&Entry| entry.expiry <= self.target;
        self.in_place().find(is_left)
    }

    /// The wheel ran out of budget.
    pub(crate) fn ran_out(&mut self) {
        self.adrift = true;
    }

    /// Returns the allowed next events: one value, or all that are not late (D4) if timers were
    /// pushed out or the wheel's position is unknown (W3).
    pub(crate) fn next_event(&self) -> RangeInclusive<Ns> {
        let waking = self.in_place().filter(|entry| !entry.deferrable);
        let expiry = waking.map(|entry| entry.expiry.max(self.clk)).min();
        let loose = self.loose.iter().filter(|loose| !loose.entry.deferrable);
        let latest = loose.map(|loose| loose.latest.max(self.clk)).min();
        let is_exact = !self.adrift && latest.is_none();
        let last = expiry.into_iter().chain(latest).min();
        let behind = if self.adrift { self.target } else { 0 };
        let last = last.map_or(Ns::NEVER, |tick| self.start(tick.max(behind)));
        if is_exact { last..=last } else { Ns::ZERO..=last }
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = &Entry> {
        self.in_place().chain(self.loose.iter().map(|loose| &loose.entry))
    }

    /// Returns the timers that were not pushed out.
    fn in_place(&self) -> impl Iterator<Item = &Entry> {
        self.armed.iter().chain(&self.due).chain(&self.overdue)
    }

    /// Advances the clock to the time of an arming.
    fn forward(&mut self, to: u64) {
        if to > self.clk {
            self.clk = to;
            self.line_up();
        }
    }

    /// Advances the clock to the next expiry within the pass, or to the end of the pass.
    fn step(&mut self) -> bool {
        let next = self.armed.first().map_or(u64::MAX, |entry| entry.expiry);
        let found = next <= self.target;
        self.forward(if found { next } else { self.target });
        found
    }

    /// Queues the timers that the clock has reached for this pass, or for the next one if they are
    /// beyond this one.
    fn line_up(&mut self) {
        let reached = self.armed.partition_point(|entry| entry.expiry <= self.clk);
        for entry in self.armed.drain(..reached) {
            if entry.expiry <= self.target {
                self.due.push(entry);
            } else {
                self.overdue.push(entry);
            }
        }
    }

    fn insert(&mut self, entry: Entry) {
        if entry.expiry <= self.clk {
            self.overdue.push(entry);
        } else {
            let at = self.armed.partition_point(|other| other.key() < entry.key());
            self.armed.insert(at, entry);
        }
    }

    /// Returns the new place of a timer whose distance was clamped.
    fn rest(&mut self, entry: &Entry) -> Option<Entry> {
        let is_due = entry.deadline.div_ceil(self.tick) <= self.clk.min(self.target);
        (entry.clamped && !is_due).then(|| self.place(entry.id, entry.deadline, entry.deferrable))
    }

    fn place(&mut self, id: usize, deadline: u64, deferrable: bool) -> Entry {
        let tick = deadline.div_ceil(self.tick);
        let distance = tick.saturating_sub(self.clk);
        let top = REACHES.len() - 1;
        let clamped = distance > REACHES[top];
        let level = if clamped {
            top
        } else {
            REACHES.iter().position(|&reach| distance <= reach).expect("within reach")
        };
        let granule = 8u64.pow(level as u32);
        let expiry = (self.clk + distance.min(REACHES[top])).div_ceil(granule) * granule;
        if distance > 0 && !clamped {
            // The bound on lateness, as documented.
            assert!(expiry >= tick && (expiry - tick) * 77 < distance * 10);
        }
        let eighth = if level == 0 { 0 } else { (tick - 1) / (granule / 8) % 8 };
        self.seq += 1;
        let expiry = if distance == 0 { self.clk } else { expiry };
        let seq = self.seq;
        Entry { id, deadline, deferrable, expiry, level, eighth, seq, clamped }
    }

    fn wakes_at(&self, entry: &Entry) -> Ns {
        if entry.deferrable { Ns::NEVER } else { self.start(entry.expiry) }
    }

    fn start(&self, tick: u64) -> Ns {
        Ns(tick.saturating_mul(self.tick))
    }
}
