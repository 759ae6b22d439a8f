//! What concurrent programs are made of, written once for every world.

use super::{Gate, Line, Played, Scene, Shared, World};
use crate::random::Random;
use tickless_core::platform::{Ordering, Word};
use tickless_core::time::Ns;

/// Waits until `ready` hands something back.
pub(super) fn wait_for<W: World, T>(world: &W, mut ready: impl FnMut() -> Option<T>) -> T {
    let mut round = 0;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        world.relax(round);
        round = round.saturating_add(1);
    }
}

/// Lines that go to and fro, so far apart and in such an order that no prefetcher guesses the next:
/// neighbouring lines in ascending order come in half the time.
pub(super) struct Transfer<W: World> {
    gate: Gate<W>,
    turn: Line<W::Word>,
    lines: Vec<Apart<W::Word>>,
    /// Behind each line the next: one circle through all of them.
    next: Vec<u64>,
    rounds: u64,
}

/// Neither a prefetched pair of lines nor the one after it reaches the next.
#[repr(align(256))]
#[derive(Debug)]
struct Apart<T>(T);

/// How many lines.
const LINES: u64 = 64;

/// A circle through so many places, drawn (Sattolo's algorithm): the same one each time, so that
/// plays can be compared.
fn circle(places: u64) -> Vec<u64> {
    let mut random = Random::new(places);
    let mut next: Vec<u64> = (0..places).collect();
    for last in (1..places).rev() {
        next.swap(last as usize, random.below(last) as usize);
    }
    next
}

impl<W: World> Transfer<W> {
    pub(super) fn new(rounds: u64) -> Transfer<W> {
        let lines = (0..LINES).map(|_| Apart(W::Word::new(0))).collect();
        let next = circle(LINES);
        Transfer { gate: Gate::new(), turn: Line(W::Word::new(0)), lines, next, rounds }
    }

    /// Each line says which one is next.
    fn write(&self) {
        for (next, line) in self.next.iter().zip(&self.lines) {
            line.0.store(*next, Ordering::Relaxed);
        }
    }

    fn walk(&self) -> u64 {
        (0..LINES).fold(0, |at, _| self.lines[at as usize].0.load(Ordering::Relaxed))
    }
}

impl<W: World> Scene<W> for Transfer<W> {
    fn play(&self, world: &W) -> Played {
        self.gate.enter(world);
        let mut ns = 0;
        for round in 0..self.rounds {
            let turn = 2 * round + world.side() as u64;
            wait_for(world, || (self.turn.0.load(Ordering::Acquire) == turn).then_some(()));
            if world.side() == 0 {
                self.write();
            } else {
                let begun = world.now();
                std::hint::black_box(self.walk());
                ns += world.now().since(begun).0;
            }
            self.turn.0.store(turn + 1, Ordering::Release);
        }
        Played { ops: LINES * self.rounds * world.side() as u64, ns: ns as f64 }
    }
}

/// One word that goes to and fro.
pub(super) struct PingPong<W: World> {
    gate: Gate<W>,
    ball: Line<W::Word>,
    rounds: u64,
    by: Waiting,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Reading,
    Exchanging,
}

impl<W: World> PingPong<W> {
    pub(super) fn by_reading(rounds: u64) -> PingPong<W> {
        PingPong::new(rounds, Waiting::Reading)
    }

    pub(super) fn by_exchange(rounds: u64) -> PingPong<W> {
        PingPong::new(rounds, Waiting::Exchanging)
    }

    fn new(rounds: u64, by: Waiting) -> PingPong<W> {
        PingPong { gate: Gate::new(), ball: Line(W::Word::new(0)), rounds, by }
    }

    fn take_turn(&self, world: &W, turn: u64) {
        let ball = &self.ball.0;
        match self.by {
            Waiting::Reading => {
                wait_for(world, || (ball.load(Ordering::Acquire) == turn).then_some(()));
                ball.store(turn + 1, Ordering::Release);
            }
            Waiting::Exchanging => {
                let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
                while ball.compare_exchange(turn, turn + 1, success, failure).is_err() {}
            }
        }
    }
}

impl<W: World> Scene<W> for PingPong<W> {
    fn play(&self, world: &W) -> Played {
        let begun = self.gate.enter(world);
        let side = world.side() as u64;
        for round in 0..self.rounds {
            self.take_turn(world, 2 * round + side);
        }
        let ns = world.now().since(begun).0 as f64;
        // Both sides saw the same round trips.
        Played { ops: if side == 0 { self.rounds } else { 0 }, ns }
    }
}

/// One word that both add to.
pub(super) struct Counter<W: World> {
    gate: Gate<W>,
    word: Line<W::Word>,
    rounds: u64,
}

impl<W: World> Counter<W> {
    pub(super) fn new(sides: usize, rounds: u64) -> Counter<W> {
        Counter { gate: Gate::of(sides), word: Line(W::Word::new(0)), rounds }
    }
}

impl<W: World> Scene<W> for Counter<W> {
    fn play(&self, world: &W) -> Played {
        self.gate.repeat(world, self.rounds, || _ = self.word.0.add(1))
    }
}

/// A lock that is taken in the order in which it was asked for.
#[derive(Debug)]
pub(super) struct TicketLock<W: World> {
    next: W::Word,
    serving: W::Word,
}

impl<W: World> TicketLock<W> {
    pub(super) fn new() -> TicketLock<W> {
        TicketLock { next: W::Word::new(0), serving: W::Word::new(0) }
    }

    /// Returns the ticket, for [`unlock`](Self::unlock).
    pub(super) fn lock(&self, world: &W) -> u64 {
        let ticket = self.next.add(1);
        wait_for(world, || (self.serving.load(Ordering::Acquire) == ticket).then_some(()));
        ticket
    }

    pub(super) fn unlock(&self, ticket: u64) {
        self.serving.store(ticket + 1, Ordering::Release);
    }
}

/// A ticket lock, and what it guards on a line of its own.
pub(super) struct Tickets<W: World> {
    gate: Gate<W>,
    lock: Line<TicketLock<W>>,
    guarded: Line<W::Word>,
    rounds: u64,
}

impl<W: World> Tickets<W> {
    pub(super) fn new(sides: usize, rounds: u64) -> Tickets<W> {
        let (lock, guarded) = (Line(TicketLock::new()), Line(W::Word::new(0)));
        Tickets { gate: Gate::of(sides), lock, guarded, rounds }
    }
}

impl<W: World> Scene<W> for Tickets<W> {
    fn play(&self, world: &W) -> Played {
        self.gate.repeat(world, self.rounds, || {
            let ticket = self.lock.0.lock(world);
            let value = self.guarded.0.load(Ordering::Relaxed);
            self.guarded.0.store(value + 1, Ordering::Relaxed);
            self.lock.0.unlock(ticket);
        })
    }
}

/// Words that are read without a lock and written by one side: a sequence says whether what was
/// read belongs together.
pub(super) struct SeqLock<W: World> {
    gate: Gate<W>,
    words: Line<[W::Word; 5]>,
    rounds: u64,
}

/// From write to write.
const REST: Ns = Ns(1_000);

impl<W: World> SeqLock<W> {
    pub(super) fn new(rounds: u64) -> SeqLock<W> {
        let words = Line(std::array::from_fn(|_| W::Word::new(0)));
        SeqLock { gate: Gate::new(), words, rounds }
    }

    fn write(&self, number: u64) {
        let [sequence, values @ ..] = &self.words.0;
        sequence.store(2 * number + 1, Ordering::Release);
        for value in values {
            value.store(number, Ordering::Release);
        }
        sequence.store(2 * number + 2, Ordering::Release);
    }

    fn read(&self, world: &W) -> u64 {
        let [sequence, values @ ..] = &self.words.0;
        wait_for(world, || {
            let before = sequence.load(Ordering::Acquire);
            let sum = values.iter().map(|value| value.load(Ordering::Acquire)).sum();
            let is_whole = before % 2 == 0 && sequence.load(Ordering::Acquire) == before;
            is_whole.then_some(sum)
        })
    }
}

impl<W: World> Scene<W> for SeqLock<W> {
    fn play(&self, world: &W) -> Played {
        if world.side() == 1 {
            let mut sum = 0_u64;
            let played = self.gate.repeat(world, 8 * self.rounds, || {
                sum = sum.wrapping_add(self.read(world));
            });
            std::hint::black_box(sum);
            return played;
        }
        self.gate.enter(world);
        let mut number = 0;
        while !self.gate.is_over() {
            self.write(number);
            number += 1;
            world.work(REST);
        }
        Played::default()
    }
}

/// A ring that one side fills and the other empties.
pub(super) struct Queue<W: World> {
    gate: Gate<W>,
    head: Line<W::Word>,
    tail: Line<W::Word>,
    slots: Vec<Line<[W::Word; SLOTS_A_LINE]>>,
    rounds: u64,
}

const SLOTS_A_LINE: usize = 8;
const SLOTS: u64 = 64;

impl<W: World> Queue<W> {
    pub(super) fn new(rounds: u64) -> Queue<W> {
        let line = |_| Line(std::array::from_fn(|_| W::Word::new(0)));
        let slots = (0..SLOTS as usize / SLOTS_A_LINE).map(line).collect();
        let word = || Line(W::Word::new(0));
        Queue { gate: Gate::new(), head: word(), tail: word(), slots, rounds }
    }

    fn slot(&self, number: u64) -> &W::Word {
        let at = (number % SLOTS) as usize;
        &self.slots[at / SLOTS_A_LINE].0[at % SLOTS_A_LINE]
    }

    fn put(&self, world: &W, number: u64) {
        wait_for(world, || (number - self.tail.0.load(Ordering::Acquire) < SLOTS).then_some(()));
        self.slot(number).store(number, Ordering::Relaxed);
        self.head.0.store(number + 1, Ordering::Release);
    }

    fn take(&self, world: &W, number: u64) -> u64 {
        wait_for(world, || (self.head.0.load(Ordering::Acquire) > number).then_some(()));
        let value = self.slot(number).load(Ordering::Relaxed);
        self.tail.0.store(number + 1, Ordering::Release);
        value
    }
}

impl<W: World> Scene<W> for Queue<W> {
    fn play(&self, world: &W) -> Played {
        let begun = self.gate.enter(world);
        let mut sum = 0_u64;
        for number in 0..self.rounds {
            match world.side() {
                0 => self.put(world, number),
                _ => sum = sum.wrapping_add(self.take(world, number)),
            }
        }
        std::hint::black_box(sum);
        let ns = world.now().since(begun).0 as f64;
        Played { ops: self.rounds * world.side() as u64, ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the walk comes to every line once, and hardly ever to the next one in memory.
    #[test]
    fn the_circle_goes_through_all_places() {
        let next = circle(LINES);
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
