//! Scenes that measure the building blocks of concurrent programs: passing cache lines, counters,
//! locks, queues.

use super::{Backend, Gate, Play, SideResult, wait_for, word};
use crate::random::Random;
use std::array;
use std::hint::black_box;
use std::sync::Arc;
use tickless_core::platform::{Ordering, OwnLine, Word};
use tickless_core::time::Ns;

/// Aligns a word to 256 bytes. A prefetcher that fetches lines in pairs, or the line that follows,
/// then never fetches the next word too.
#[repr(align(256))]
struct Apart<T>(T);

const LINES: u64 = 64;

/// Returns for each line the number of the line that is read after it. All lines form one random
/// cycle (Sattolo's algorithm), the same in every run. In a regular order, a prefetcher would guess
/// the next line and halve the time.
fn cycle(lines: u64) -> Vec<u64> {
    let mut random = Random::new(lines);
    let mut next: Vec<u64> = (0..lines).collect();
    for last in (1..lines).rev() {
        next.swap(last as usize, random.below(last) as usize);
    }
    next
}

/// Passes lines from a writer to a reader. Each line has the number of the next one, so each read
/// waits for the one before.
pub(super) fn transfer<W: Backend>(rounds: u64) -> Play {
    transfer_with::<W>(rounds, |lines, _| {
        let follow = |at, _| load_next::<W>(lines, at);
        (0..LINES).fold(0, follow)
    })
}

/// As `transfer`, but the reader knows the order of the lines, so it requests the next line before
/// the previous one has come.
pub(super) fn transfer_ahead<W: Backend>(rounds: u64) -> Play {
    transfer_with::<W>(rounds, |lines, next| {
        next.iter().map(|&at| lines[at as usize].0.load(Ordering::Relaxed)).sum()
    })
}

fn load_next<W: Backend>(lines: &[Apart<W::Word>], at: u64) -> u64 {
    let next = lines[at as usize].0.load(Ordering::Relaxed);
    W::depend();
    next
}

/// As `transfer`, but after each line that it has read, the reader adds to that line.
pub(super) fn transfer_and_add<W: Backend>(rounds: u64) -> Play {
    transfer_with::<W>(rounds, |lines, _| {
        (0..LINES).fold(0, |at, _| {
            let next = load_next::<W>(lines, at);
            // Adds to the line that was loaded. The index contains the loaded number's upper half,
            // which is zero, so that the CPU cannot request the line for the addition before the
            // load has ended.
            lines[(at + (next >> 32)) as usize].0.add(0, Ordering::AcqRel);
            next
        })
    })
}

/// One side writes to each line the number of the next one. The other side then calls `visit` with
/// the lines and these numbers. `visit` reads every line and returns what it has loaded.
fn transfer_with<W: Backend>(
    rounds: u64,
    visit: impl Fn(&[Apart<W::Word>], &[u64]) -> u64 + Send + Sync + 'static,
) -> Play {
    let (gate, turn) = (Gate::<W>::new(2), word::<W>());
    let lines: Vec<_> = (0..LINES).map(|_| Apart(W::Word::new(0))).collect();
    let next = cycle(LINES);
    Arc::new(move || {
        let write = |_| {
            for (next, line) in next.iter().zip(&lines) {
                line.0.store(*next, Ordering::Relaxed);
            }
        };
        gate.take_turns(&turn, rounds, LINES, write, || _ = black_box(visit(&lines, &next)))
    })
}

/// Passes a word back and forth. Each side waits by reading the word.
pub(super) fn ping_pong<W: Backend>(rounds: u64) -> Play {
    ping_pong_with::<W>(rounds, |ball, turn| {
        wait_for::<W, _>(|| (ball.load(Ordering::Acquire) == turn).then_some(()));
        ball.store(turn + 1, Ordering::Release);
    })
}

/// Passes a word back and forth. Each side waits by trying to replace the word.
pub(super) fn ping_pong_by_exchange<W: Backend>(rounds: u64) -> Play {
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    ping_pong_with::<W>(rounds, move |ball, turn| {
        while ball.compare_exchange(turn, turn + 1, success, failure).is_err() {}
    })
}

/// Each side in turn waits until the shared word has a certain number, and replaces it by the next.
fn ping_pong_with<W: Backend>(
    rounds: u64,
    pass: impl Fn(&W::Word, u64) + Send + Sync + 'static,
) -> Play {
    let (gate, ball) = (Gate::<W>::new(2), word::<W>());
    Arc::new(move || {
        let begun = gate.enter();
        let side = W::side() as u64;
        for round in 0..rounds {
            pass(&ball, 2 * round + side);
        }
        let ns = W::now().since(begun).0 as f64;
        // Each round trip involves both sides: count it on side 0 only.
        SideResult { ops: if side == 0 { rounds } else { 0 }, ns }
    })
}

pub(super) fn counter<W: Backend>(sides: usize, rounds: u64) -> Play {
    let (gate, word) = (Gate::<W>::new(sides), word::<W>());
    Arc::new(move || gate.repeat(rounds, || _ = word.add(1, Ordering::AcqRel)))
}

#[derive(Debug)]
pub(super) struct TicketLock<W: Backend> {
    next: W::Word,
    serving: W::Word,
}

#[derive(Debug)]
pub(super) struct Ticket<'a, W: Backend> {
    lock: &'a TicketLock<W>,
    number: u64,
}

impl<W: Backend> TicketLock<W> {
    pub(super) fn new() -> TicketLock<W> {
        TicketLock { next: W::Word::new(0), serving: W::Word::new(0) }
    }

    pub(super) fn lock(&self) -> Ticket<'_, W> {
        let number = self.next.add(1, Ordering::AcqRel);
        wait_for::<W, _>(|| (self.serving.load(Ordering::Acquire) == number).then_some(()));
        Ticket { lock: self, number }
    }
}

impl<W: Backend> Drop for Ticket<'_, W> {
    fn drop(&mut self) {
        self.lock.serving.store(self.number + 1, Ordering::Release);
    }
}

pub(super) fn ticket_lock<W: Backend>(sides: usize, rounds: u64) -> Play {
    let (gate, guarded) = (Gate::<W>::new(sides), word::<W>());
    let lock = OwnLine(TicketLock::<W>::new());
    Arc::new(move || {
        gate.repeat(rounds, || {
            let _held = lock.lock();
            let value = guarded.load(Ordering::Relaxed);
            guarded.store(value + 1, Ordering::Relaxed);
        })
    })
}

/// A sequence lock: one side writes words, the other reads them without blocking the writer. The
/// first word is a sequence number, which is odd during a write. A reader that sees an odd or a
/// changed number reads again.
pub(super) fn seq_lock<W: Backend>(rounds: u64) -> Play {
    const WRITE_EVERY: Ns = Ns(1_000);
    let gate = Gate::<W>::new(2);
    let words: OwnLine<[W::Word; 5]> = OwnLine(array::from_fn(|_| W::Word::new(0)));
    Arc::new(move || {
        let [sequence, values @ ..] = &*words;
        if W::side() == 1 {
            return gate.repeat(8 * rounds, || {
                let sum: u64 = wait_for::<W, _>(|| {
                    let before = sequence.load(Ordering::Acquire);
                    let sum = values.iter().map(|value| value.load(Ordering::Acquire)).sum();
                    let is_whole = before % 2 == 0 && sequence.load(Ordering::Acquire) == before;
                    is_whole.then_some(sum)
                });
                black_box(sum);
            });
        }
        gate.enter();
        let mut number = 0;
        while !gate.has_ended() {
            sequence.store(2 * number + 1, Ordering::Release);
            values.iter().for_each(|value| value.store(number, Ordering::Release));
            sequence.store(2 * number + 2, Ordering::Release);
            number += 1;
            W::work(WRITE_EVERY);
        }
        SideResult::default()
    })
}

/// How consecutive slots of the ring buffer are placed in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotOrder {
    /// Eight slots to a cache line, the lines in ascending order.
    Ascending,
    /// Each slot on a cache line of its own, the lines in random order.
    Random,
}

/// One side puts numbers into a ring of slots, the other one takes them.
pub(super) fn queue<W: Backend>(rounds: u64, order: SlotOrder) -> Play {
    const SLOTS: u64 = 64;
    const SLOTS_A_LINE: u64 = 8;
    let (gate, head, tail) = (Gate::<W>::new(2), word::<W>(), word::<W>());
    let line =
        |_| OwnLine(array::from_fn::<W::Word, { SLOTS_A_LINE as usize }, _>(|_| W::Word::new(0)));
    let (lines, places): (u64, Vec<(u64, u64)>) = match order {
        SlotOrder::Ascending => {
            let place = |at| (at / SLOTS_A_LINE, at % SLOTS_A_LINE);
            (SLOTS / SLOTS_A_LINE, (0..SLOTS).map(place).collect())
        }
        SlotOrder::Random => {
            let next = cycle(SLOTS);
            let walk = std::iter::successors(Some(0), |&at| Some(next[at as usize]));
            (SLOTS, walk.take(SLOTS as usize).map(|line| (line, 0)).collect())
        }
    };
    let lines: Vec<_> = (0..lines).map(line).collect();
    Arc::new(move || {
        let begun = gate.enter();
        for number in 0..rounds {
            let (line, slot) = places[(number % SLOTS) as usize];
            let slot = &lines[line as usize][slot as usize];
            if W::side() == 0 {
                wait_for::<W, _>(|| (number - tail.load(Ordering::Acquire) < SLOTS).then_some(()));
                slot.store(number, Ordering::Relaxed);
                head.store(number + 1, Ordering::Release);
            } else {
                wait_for::<W, _>(|| (head.load(Ordering::Acquire) > number).then_some(()));
                black_box(slot.load(Ordering::Relaxed));
                tail.store(number + 1, Ordering::Release);
            }
        }
        let ns = W::now().since(begun).0 as f64;
        SideResult { ops: rounds * W::side() as u64, ns }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the cycle visits every line once, and rarely goes to the line that follows in memory.
    #[test]
    fn cycle_visits_every_line_once() {
        let next = cycle(LINES);
        let (mut at, mut seen, mut neighbours) = (0, vec![false; LINES as usize], 0);
        for _ in 0..LINES {
            assert!(!std::mem::replace(&mut seen[at as usize], true), "{at} twice");
            neighbours += u32::from(next[at as usize] == at + 1);
            at = next[at as usize];
        }
        assert_eq!(at, 0);
        assert!(neighbours < 4 && size_of::<Apart<u64>>() == 256, "{neighbours}");
    }
}
