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
    /// Pushed out lazily: its place among those of its instant is not promised.
    pub(crate) unordered: bool,
}

impl Entry {
    fn key(&self) -> (u64, Reverse<usize>, u64, u64) {
        (self.expiry, Reverse(self.level), self.eighth, self.seq)
    }
}

/// Is the twin's order that of [`PushOut::Eager`](tickless_core::queues::wheel::PushOut)?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Exact,
    /// Timers that were pushed out may come in any order.
    Pushed,
}

pub(crate) struct Twin {
    tick: u64,
    order: Order,
    pub(crate) clk: u64,
    pub(crate) target: u64,
    seq: u64,
    /// Not due yet, sorted by [`Entry::key`].
    armed: Vec<Entry>,
    /// To be popped, in this order.
    due: Vec<Entry>,
    /// To be popped from the next advance on, in this order.
    overdue: Vec<Entry>,
    /// A lazy wheel may have reached timers that only had to be moved or armed again, or may
    /// not: where exactly in the round it stands is its own affair until the round ends.
    adrift: bool,
}

impl Twin {
    pub(crate) fn new(tick: Ns, order: Order, now: u64) -> Twin {
        let clk = now / tick.0;
        Twin {
            tick: tick.0,
            order,
            clk,
            target: clk,
            seq: 0,
            armed: vec![],
            due: vec![],
            overdue: vec![],
            adrift: false,
        }
    }

    /// Arms or re-arms; returns when the timer will be due.
    pub(crate) fn arm(&mut self, id: usize, deadline: u64, now: u64, deferrable: bool) -> Ns {
        if let Some(wakes) = self.stay(id, deadline, now, deferrable) {
            return wakes;
        }
        self.forward(now / self.tick);
        let old = self.remove(id);
        let mut entry = self.place(id, deadline, deferrable);
        if let Some(old) = old {
            let pushed_out = old.expiry > self.clk && entry.expiry >= old.expiry;
            entry.unordered = self.order == Order::Pushed && pushed_out;
        }
        let wakes = self.wakes_at(&entry);
        self.insert(entry);
        wakes
    }

    /// A lazy wheel leaves a timer where it is that is pushed out within its granule, if the
    /// granule is no more than an eighth of what is ahead.
    fn stay(&mut self, id: usize, deadline: u64, now: u64, deferrable: bool) -> Option<Ns> {
        if self.order == Order::Exact {
            return None;
        }
        let soonest = now.max((self.clk + 1).saturating_mul(self.tick));
        let (clk, tick) = (self.clk, self.tick);
        let entry = self.armed.iter_mut().find(|entry| entry.id == id)?;
        let due = entry.expiry.saturating_mul(tick);
        let late = due.checked_sub(deadline)?;
        let stays = entry.expiry > clk
            && deadline >= entry.deadline
            && late <= deadline.saturating_sub(soonest) / 8
            && entry.deferrable == deferrable;
        if !stays {
            return None;
        }
        entry.deadline = deadline;
        entry.unordered = true;
        let entry = entry.clone();
        Some(self.wakes_at(&entry))
    }

    pub(crate) fn reduce(&mut self, id: usize, deadline: u64, now: u64, deferrable: bool) -> Ns {
        let earlier = |entry: &&Entry| entry.id == id && entry.deadline <= deadline;
        if let Some(kept) = self.pending().find(earlier) {
            return self.wakes_at(kept);
        }
        self.arm(id, deadline, now, deferrable)
    }

    pub(crate) fn remove(&mut self, id: usize) -> Option<Entry> {
        for list in [&mut self.armed, &mut self.due, &mut self.overdue] {
            if let Some(at) = list.iter().position(|entry| entry.id == id) {
                return Some(list.remove(at));
            }
        }
        None
    }

    pub(crate) fn advance(&mut self, now: u64) {
        self.target = self.target.max(now / self.tick).max(self.clk);
        self.due.append(&mut self.overdue);
    }

    /// The whole of a pop where the order is exact.
    pub(crate) fn pop(&mut self, budget: &mut usize) -> Option<Entry> {
        loop {
            if self.due.is_empty() && !self.step() {
                return None;
            }
            if self.due.is_empty() {
                continue;
            }
            if *budget == 0 {
                return None;
            }
            *budget -= 1;
            let entry = self.due.remove(0);
            if let Some(rest) = self.rest(&entry) {
                self.insert(rest);
            } else {
                return Some(entry);
            }
        }
    }

    /// Follows a lazy wheel that has popped `id`, or says what is wrong with that.
    pub(crate) fn popped(&mut self, id: usize) -> Result<Entry, String> {
        loop {
            self.arm_rests();
            if let Some(at) = self.due.iter().position(|entry| entry.id == id) {
                let entry = self.due.remove(at);
                let overtaken = self.due[..at].iter().find(|other| !other.unordered);
                return match overtaken {
                    Some(other) if !entry.unordered && !self.adrift => {
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

    /// A lazy wheel says that the round is over: is it?
    pub(crate) fn drained(&mut self) -> Result<(), String> {
        loop {
            self.arm_rests();
            if let Some(entry) = self.due.first() {
                return Err(format!("{entry:?} was not popped in its round"));
            }
            if !self.step() {
                self.adrift = false;
                return Ok(());
            }
        }
    }

    /// A lazy wheel ran out of budget.
    pub(crate) fn ran_out(&mut self) {
        self.adrift = true;
    }

    /// Is there, or could there be, something left to pop in this round?
    pub(crate) fn in_round(&self) -> bool {
        !self.due.is_empty() || self.clk < self.target
    }

    /// What the wheel may answer: one value, or anything not too late (D4) where it may have
    /// moved or armed again something that the twin still sees as due.
    pub(crate) fn next_event(&self) -> RangeInclusive<Ns> {
        let waking = self.pending().filter(|entry| !entry.deferrable);
        let expiry = waking.map(|entry| entry.expiry.max(self.clk)).min();
        match expiry {
            _ if self.adrift => {
                Ns::ZERO..=expiry.map_or(Ns::NEVER, |tick| self.start(tick.max(self.target)))
            }
            None => Ns::NEVER..=Ns::NEVER,
            Some(tick) => self.start(tick)..=self.start(tick),
        }
    }

    /// Must the wheel give the same answers as the twin?
    pub(crate) fn is_exact(&self) -> bool {
        !self.adrift
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = &Entry> {
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
        if !entry.clamped {
            return None;
        }
        let mut rest = self.place(entry.id, entry.deadline, entry.deferrable);
        rest.unordered = self.order == Order::Pushed;
        (rest.expiry > self.clk).then_some(rest)
    }

    /// A lazy wheel arms rests between two pops, in an order that pushing out may change.
    fn arm_rests(&mut self) {
        for entry in std::mem::take(&mut self.due) {
            match self.rest(&entry) {
                Some(rest) => {
                    self.adrift = true;
                    self.insert(rest);
                }
                None => self.due.push(entry),
            }
        }
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
        Entry { id, deadline, deferrable, expiry, level, eighth, seq, clamped, unordered: false }
    }

    fn wakes_at(&self, entry: &Entry) -> Ns {
        if entry.deferrable { Ns::NEVER } else { self.start(entry.expiry) }
    }

    fn start(&self, tick: u64) -> Ns {
        Ns(tick.saturating_mul(self.tick))
    }
}
