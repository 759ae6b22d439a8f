//! The naive twin: what the wheel must be indistinguishable from, told with one sorted Vec.
//!
//! It knows the rules and none of the wheel's means: no buckets, bitmaps, counts or marks, and
//! plain division where the wheel multiplies and shifts. The reaches of the levels are those
//! of the table in the wheel's documentation.

use std::cmp::Reverse;
use std::ops::RangeInclusive;
use tickless_core::time::Ns;

/// How far each level reaches, in ticks.
pub(crate) const REACHES: [u64; 9] =
    [63, 497, 3_972, 31_776, 254_201, 2_033_602, 16_268_816, 130_150_525, 1_040_187_392];

/// A pending timer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: usize,
    pub(crate) deadline: u64,
    pub(crate) deferrable: bool,
    /// When it falls due, in ticks.
    pub(crate) expiry: u64,
    level: usize,
    /// Which eighth of its granule the deadline lies in.
    eighth: u64,
    seq: u64,
    /// The deadline lies farther than the wheel reaches: due only to be armed again.
    clamped: bool,
}

impl Entry {
    fn key(&self) -> (u64, Reverse<usize>, u64, u64) {
        (self.expiry, Reverse(self.level), self.eighth, self.seq)
    }
}

/// A timer that was put off beside the wheel. When exactly it is looked at and moved is the wheel's
/// affair, and so is its place among those of its instant.
struct Loose {
    entry: Entry,
    /// When it fires at the latest, in ticks: as late as if it had been armed when its old bucket
    /// came due.
    latest: u64,
    /// It was armed for the past, and waits for the next advance.
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
    /// The wheel may have reached timers that only had to be moved, or may not: where exactly in
    /// the round it stands is its own affair until the round ends.
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

    /// Arms or re-arms; returns when the timer will be due.
    pub(crate) fn arm(&mut self, id: usize, deadline: u64, now: u64, deferrable: bool) -> Ns {
        self.forward(now / self.tick);
        self.remove(id);
        let entry = self.place(id, deadline, deferrable);
        let wakes = self.wakes_at(&entry);
        self.insert(entry);
        wakes
    }

    /// A pending timer is put off beside the wheel.
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

    /// The whole of a pop where the order is exact.
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

    /// Follows a wheel that has popped `id`, or says what is wrong with that.
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
                return Err(format!("{id} popped in a round that it does not belong to"));
            }
        }
    }

    /// The wheel says that the round is over: is it?
    pub(crate) fn drained(&mut self) -> Result<(), String> {
        loop {
            if let Some(entry) = self.due.first() {
                return Err(format!("{entry:?} was not popped in its round"));
            }
            if !self.step() {
                self.adrift = false;
                let left = |loose: &&Loose| !loose.waits && loose.latest <= self.target;
                return match self.loose.iter().find(left) {
                    Some(Loose { entry, .. }) => Err(format!("{entry:?} was left in its round")),
                    None => Ok(()),
                };
            }
        }
    }

    /// A timer that should have fired by now.
    pub(crate) fn left_behind(&self) -> Option<&Entry> {
        let is_left = |entry: &&Entry| entry.expiry <= self.target;
        self.in_place().find(is_left)
    }

    /// The wheel ran out of budget.
    pub(crate) fn ran_out(&mut self) {
        self.adrift = true;
    }

    /// What the wheel may answer: one value, or anything not too late (D4) where it may have
    /// moved something that the twin still sees as due, or something was put off (W3).
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

    /// Those that were not put off.
    fn in_place(&self) -> impl Iterator<Item = &Entry> {
        self.armed.iter().chain(&self.due).chain(&self.overdue)
    }

    /// Brings the clock to a present that an arm has mentioned.
    fn forward(&mut self, to: u64) {
        if to > self.clk {
            self.clk = to;
            self.line_up();
        }
    }

    /// Goes on to the next expiry within the round; otherwise the clock ends at its target.
    fn step(&mut self) -> bool {
        let next = self.armed.first().map_or(u64::MAX, |entry| entry.expiry);
        let found = next <= self.target;
        self.forward(if found { next } else { self.target });
        found
    }

    /// What the clock has reached lines up for this round, or for the next if no advance has
    /// asked for it yet.
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

    /// What a clamped timer has left, seen from the present.
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
            // W1, as the documentation words it.
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
