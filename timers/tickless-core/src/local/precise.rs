//! The precise timers of [`LocalTimers`](super::LocalTimers): binary heaps of slot numbers in the
//! order of hard expiry (the end of a timer's window), and for equal expiries in order of arming.
//!
//! An entry carries the values that it is ordered by, so that a comparison reads no record. A
//! record holds the index of its timer's entry, so that cancelling needs no search. Room is
//! allocated when a timer is inserted, so that arming does not allocate.
//!
//! An advance is one pass over the heap. A timer that is armed for the time of the last pass or
//! earlier waits in a heap of its own until the next pass: otherwise a callback that arms its own
//! timer for the past would keep every other timer from firing.
//!
//! The futures of this thread leave the entry of a timer in place when they cancel the timer or arm
//! it for a later time. Such an entry is earlier than its timer. When the entry becomes the first
//! in its heap, it is moved or removed.
//!
//! A pass without a budget that finds many timers due takes them off the heap at once, and sorts
//! them. For 100,000 timers this takes a third of the time of popping one after the other.

use super::table::{NO_SLOT, Record, Records, SlotKey};
use crate::time::{Ns, Window};
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The heap of timers for the current pass and later ones. A record's level is the index of the
/// heap that has its timer, this one or [`LATE`], or [`DUE`].
const QUEUED: usize = 0;
/// The heap of timers that were armed for the past, and wait for the next pass.
const LATE: usize = 1;
/// The level of timers in the list `due`, which is no heap.
const DUE: usize = 2;

#[derive(Clone, Copy)]
struct Entry {
    hard: Ns,
    /// Increases with each new entry: of equal expiries, the one that was armed first fires first.
    order: u64,
    soft: Ns,
    slot: u32,
}

impl Entry {
    fn is_before(&self, other: &Entry) -> bool {
        (self.hard, self.order) < (other.hard, other.order)
    }
}

pub(super) struct PreciseHeap {
    heaps: [Vec<Entry>; 2],
    /// The timers that a pass has taken off the heap at once: a list, the latest deadline first. If
    /// a timer was cancelled or armed again since, its entry is blank. The last is never blank.
    due: Vec<Entry>,
    pending: usize,
    orders: u64,
    /// The earliest hard expiry of [`LATE`] and `due`, or [`Ns::NEVER`].
    others: Ns,
    /// The time of the last pass.
    pass: Option<Ns>,
    /// Whether the last pass has fired all its timers.
    is_done: bool,
}

impl PreciseHeap {
    pub(super) const fn new() -> PreciseHeap {
        PreciseHeap {
            heaps: [Vec::new(), Vec::new()],
            due: Vec::new(),
            pending: 0,
            orders: 0,
            others: Ns::NEVER,
            pass: None,
            is_done: true,
        }
    }

    /// Allocates room for `timers` timers in all, rather than for this many more.
    pub(super) fn reserve(&mut self, timers: usize) {
        for heap in &mut self.heaps {
            heap.reserve_exact(timers.saturating_sub(heap.len()));
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Returns the earliest hard expiry, or [`Ns::NEVER`]. The time is too early if the timer of
    /// the first entry was cancelled, or armed for a later time, and its entry was left in place.
    pub(super) fn next_event(&self) -> Ns {
        self.heaps[QUEUED].first().map_or(Ns::NEVER, |entry| entry.hard).min(self.others)
    }

    /// Finds the earliest expiry in the heaps of late and of due timers.
    fn find_others(&mut self) {
        let (late, due) = (self.heaps[LATE].first(), self.due.last());
        self.others =
            late.into_iter().chain(due).map(|entry| entry.hard).min().unwrap_or(Ns::NEVER);
    }

    /// Arms a timer, pending or not. O(log n).
    pub(super) fn arm(&mut self, records: &mut Records, slot: u32, window: Window) {
        self.cancel(records, slot);
        let heap = match self.pass {
            Some(now) if window.soft <= now => LATE,
            _ => QUEUED,
        };
        self.push(records, heap, slot, window);
    }

    /// Cancels a timer, and removes its entry. Returns whether it was pending. O(log n).
    pub(super) fn cancel(&mut self, records: &mut Records, slot: u32) -> bool {
        let Some(record) = records.record(slot) else { return false };
        let (heap, at) = (record.level() as usize, record.place as usize);
        let is_pending = record.is_pending();
        if record.is_on_chain() {
            self.pending -= usize::from(is_pending);
            record.rest();
            self.remove(records, heap, at);
        }
        is_pending
    }

    /// Arms a timer for `time` without moving its entry, if the entry's expiry is not after `time`.
    /// Returns whether the timer was armed.
    #[inline]
    pub(super) fn push_out(&mut self, record: &mut Record, time: Ns) -> bool {
        let stays = record.level() == QUEUED as u32
            && (time >= record.time || self.is_due_by(record.place, time));
        if stays {
            record.time = time;
            self.pending += usize::from(!record.is_pending());
            record.set_pending();
        }
        stays
    }

    #[inline]
    fn is_due_by(&self, at: u32, time: Ns) -> bool {
        self.heaps[QUEUED].get(at as usize).is_some_and(|entry| entry.hard <= time)
    }

    /// Cancels a pending timer. Its entry stays in place.
    #[inline]
    pub(super) fn cancel_in_place(&mut self, record: &mut Record) {
        self.pending -= 1;
        record.cancel();
    }

    /// Settles both heaps, and returns the exact earliest hard expiry, or [`Ns::NEVER`].
    pub(super) fn settled_next_event(&mut self, records: &mut Records) -> Ns {
        self.settle(records, QUEUED);
        self.settle(records, LATE);
        self.next_event()
    }

    /// Moves the first entry of a heap if its timer was armed for a later time, or removes it if
    /// its timer was cancelled, until the first entry is right. O(log n) for each moved entry.
    #[inline]
    fn settle(&mut self, records: &mut Records, heap: usize) {
        while let Some(first) = self.heaps[heap].first_mut() {
            let Some(record) = records.record(first.slot) else { return };
            if !record.is_pending() {
                record.rest();
                self.remove(records, heap, 0);
            } else if record.time > first.hard {
                (first.soft, first.hard) = (record.time, record.time);
                self.sink(records, heap, 0);
                self.find_others();
            } else {
                return;
            }
        }
    }

    /// Begins a pass, in which the caller pops timers until `None`. Timers that were armed for the
    /// past are queued now. If the last pass stopped early, the timers that it left over must stay
    /// first in line: timers that were armed for the past are then queued with a hard expiry no
    /// earlier than the time of the last pass. O(k log n) for k late timers.
    pub(super) fn begin_pass(&mut self, records: &mut Records, now: Ns, budget: usize) {
        let last = self.pass.filter(|_| !self.is_done && self.is_due()).unwrap_or(Ns::ZERO);
        (self.pass, self.is_done) = (Some(now), false);
        self.settle(records, LATE);
        while let Some(&Entry { hard, soft, slot, .. }) = self.heaps[LATE].first() {
            self.remove(records, LATE, 0);
            self.pending -= 1;
            self.push(records, QUEUED, slot, Window { soft, hard: hard.max(last) });
            self.settle(records, LATE);
        }
        // With a smaller budget, the pass would examine fewer timers than `take_many` takes.
        if budget >= self.heaps[QUEUED].len() && self.is_due() {
            self.take_many(records, now);
        }
    }

    /// Removes and returns the next timer that can fire in this pass. Stops at the first timer, in
    /// the order of hard expiry, that cannot fire yet: `queues/tree.rs` has the reasons. O(log n).
    #[inline]
    pub(super) fn pop(&mut self, records: &mut Records) -> Option<SlotKey> {
        self.settle(records, QUEUED);
        self.is_done = self.is_done || !self.is_due();
        if self.is_done {
            return None;
        }
        let slot = self.first()?.slot;
        self.cancel(records, slot);
        Some(records.key_of(slot))
    }

    /// Returns the entry that is next in line. Timers that were armed for the past do not count.
    #[inline]
    fn first(&self) -> Option<&Entry> {
        let queued = self.heaps[QUEUED].first();
        match self.due.last() {
            Some(due) => queued.filter(|queued| queued.is_before(due)).or(Some(due)),
            None => queued,
        }
    }

    /// Returns whether the first timer's window had begun at the time of the last pass.
    fn is_due(&self) -> bool {
        self.pass.is_some_and(|now| self.first().is_some_and(|first| first.soft <= now))
    }

    /// If many timers are due, moves all whose hard expiry has passed from the heap to the list. No
    /// other timer keeps them from firing in this pass. O(n log n) for n pending timers, or O(n) if
    /// they are in order. Examines three leaves of the heap: if one is due, many timers are. Leaves
    /// are half of a heap and its later part, so a leaf is seldom due if few timers are.
    fn take_many(&mut self, records: &mut Records, now: Ns) {
        let (queued, due) = (&mut self.heaps[QUEUED], &mut self.due);
        let leaves = [5, 6, 7].map(|eighth| queued.get(queued.len() * eighth / 8));
        let is_due = leaves.into_iter().flatten().any(|entry| entry.hard <= now);
        if !is_due || queued.len() < 16 || !due.is_empty() {
            return;
        }
        queued.retain_mut(|entry| {
            let Some(record) = records.record(entry.slot) else { return false };
            if !record.is_pending() {
                record.rest();
                return false;
            }
            if record.time > entry.hard {
                (entry.soft, entry.hard) = (record.time, record.time);
            }
            let waits = entry.hard > now;
            due.extend((!waits).then_some(*entry));
            waits
        });
        due.sort_by_key(|entry| Reverse((entry.hard, entry.order)));
        for (entry, at) in due.iter().zip(0..) {
            if let Some(record) = records.record(entry.slot) {
                record.arm(entry.hard, DUE as u32, at);
            }
        }
        (0..queued.len()).for_each(|at| records.put(queued[at].slot, at as u32));
        (0..queued.len() / 2).rev().for_each(|at| self.sink(records, QUEUED, at));
        self.find_others();
    }

    /// Adds an entry to a heap, and notes in the timer's record where it is.
    fn push(&mut self, records: &mut Records, heap: usize, slot: u32, window: Window) {
        self.orders += 1;
        self.pending += 1;
        let Window { soft, hard } = window;
        let at = self.heaps[heap].len();
        self.heaps[heap].push(Entry { hard, order: self.orders, soft, slot });
        if let Some(record) = records.record(slot) {
            record.arm(hard, heap as u32, at as u32);
        }
        self.rise(records, heap, at);
        if heap == LATE {
            self.find_others();
        }
    }

    /// Removes an entry. In a heap, the last entry takes its place; in `due`, it becomes blank.
    fn remove(&mut self, records: &mut Records, heap: usize, at: usize) {
        if heap == DUE {
            self.due[at].slot = NO_SLOT;
            while self.due.last().is_some_and(|last| last.slot == NO_SLOT) {
                self.due.pop();
            }
            if self.due.is_empty() {
                self.due = Vec::new();
            }
            self.find_others();
            return;
        }
        self.heaps[heap].swap_remove(at);
        if at < self.heaps[heap].len() {
            self.sink(records, heap, at);
            self.rise(records, heap, at);
        }
        if heap == LATE {
            self.find_others();
        }
    }

    /// Swaps an entry with its parent in the heap until the parent is not later.
    fn rise(&mut self, records: &mut Records, heap: usize, mut at: usize) {
        let entries = &mut self.heaps[heap];
        while at > 0 && entries[at].is_before(&entries[(at - 1) / 2]) {
            entries.swap(at, (at - 1) / 2);
            records.put(entries[at].slot, at as u32);
            at = (at - 1) / 2;
        }
        records.put(entries[at].slot, at as u32);
    }

    /// Swaps an entry with the earlier of its children in the heap until neither child is earlier.
    fn sink(&mut self, records: &mut Records, heap: usize, mut at: usize) {
        let entries = &mut self.heaps[heap];
        loop {
            let children = [2 * at + 1, 2 * at + 2].into_iter().filter(|&at| at < entries.len());
            let earliest = children.reduce(|left, right| {
                if entries[right].is_before(&entries[left]) { right } else { left }
            });
            let Some(child) = earliest.filter(|&child| entries[child].is_before(&entries[at]))
            else {
                break;
            };
            entries.swap(at, child);
            records.put(entries[at].slot, at as u32);
            at = child;
        }
        records.put(entries[at].slot, at as u32);
    }
}

const _: () = assert!(size_of::<Record>() == 16 && size_of::<Entry>() == 32);

#[cfg(test)]
mod tests {
    use crate::local::{Clock, LocalTimers};
    use crate::time::Instant;

    /// Goal: an advance with a budget does not examine all due timers, however many there are.
    #[test]
    fn only_an_advance_without_a_budget_takes_many_timers_at_once() {
        const MANY: u64 = if cfg!(miri) { 100 } else { 1_000 };
        let rest = MANY as usize - 1;
        for (budget, wanted) in [(1, 0), (rest, 0), (usize::MAX, rest)] {
            let mut timers = LocalTimers::new(Clock::manual(Instant::ZERO));
            for at in 1..=MANY {
                let key = timers.insert_precise(()).unwrap();
                timers.start_at(key, Instant::from_nanos(at)).unwrap();
            }
            let mut listed = None;
            timers.advance_at_most(Instant::from_secs(1), budget, |timers, _| {
                listed.get_or_insert(timers.heap.due.len());
            });
            assert_eq!(listed, Some(wanted), "budget {budget}");
        }
    }
}
