//! Assigns a recorded trace's operations to simulated CPUs, and to times on the simulated clock.
//!
//! A second of a busy program on hundreds of CPUs has tens of millions of [steps](Step). They are
//! not stored: each simulated CPU merges a few lists of operations, each of which is in order of
//! time.

use super::operations::{Home, Operation, Timer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};
use tickless_machine::random::Random;
use tickless_trace::replay::streams::{Start, Streams, What};

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) begins: Ns,
    pub(super) ends: Ns,
    homes: Vec<Home>,
    parts: Vec<Part>,
    /// For each CPU of the trace: the simulated CPUs that repeat its operations.
    players: Vec<Vec<u16>>,
    seed: u64,
}

#[derive(Debug)]
struct Part {
    source: CpuId,
    recorded: Range<Ns>,
    /// The trace's clock minus the simulated machine's clock, for this CPU.
    shift: i128,
    /// The lists of operations that this CPU performs. For each: the simulated CPU that owns the
    /// timers of these operations, and the index of the list (`Strand`) in that CPU's `Home`.
    strands: Vec<(CpuId, usize)>,
    pending: Vec<(u32, Start)>,
}

/// The simulated clock begins at the trace's time modulo this many ticks, to keep simulated time
/// small. Expiries of coarse timers are still rounded as in the recording: the timer wheel rounds
/// them to multiples of its granules, which are larger than this only for timers of more than four
/// hours (at 1,000 Hz).
const GRANULE_TICKS: u64 = 1 << 18;

impl Layout {
    /// Assigns each simulated CPU a CPU of the trace and an offset in time, drawn at random. If
    /// there are as many CPUs as in the trace, assigns each one its own, with offset 0.
    pub(super) fn new(streams: &Streams, cpus: u16, window: Ns, seed: u64) -> Layout {
        let mut random = Random::new(seed << 1 | 1);
        let of_trace = streams.cpus.max(1);
        let tick = (streams.tick.length().as_nanos() as u64).max(1);
        let span = streams.ends.since(streams.begins);
        let room = span.since(window).0 / tick;
        let as_recorded = cpus == of_trace;
        let draw = |cpu: u16, random: &mut Random| match as_recorded {
            true => (CpuId(cpu), 0),
            false => {
                let source = CpuId(random.below(u64::from(of_trace)) as u16);
                (source, random.below(room + 1) * tick)
            }
        };
        // Timers that are already armed when the measured interval begins must be armed before it,
        // so the interval must not begin at time 0.
        let granule = GRANULE_TICKS * tick;
        let begins = Ns(streams.begins.0 % granule + granule);
        let earlier = i128::from(streams.begins.0) - i128::from(begins.0);
        let part = |cpu| {
            let (source, phase) = draw(cpu, &mut random);
            let from = streams.begins.after(Ns(phase));
            Part {
                source,
                recorded: from..from.after(window),
                shift: i128::from(phase) + earlier,
                strands: Vec::new(),
                pending: pending(streams, source, from),
            }
        };
        let mut layout = Layout {
            begins,
            ends: begins.after(window),
            homes: Home::all(streams),
            parts: (0..cpus).map(part).collect(),
            players: vec![Vec::new(); usize::from(of_trace)],
            seed,
        };
        for (cpu, part) in layout.parts.iter().enumerate() {
            layout.players[part.source.index()].push(cpu as u16);
        }
        layout.hand_out();
        layout
    }

    /// Assigns each strand (operations of one CPU on one home CPU's timers) to a simulated CPU.
    fn hand_out(&mut self) {
        for home in (0..self.parts.len()).map(|cpu| CpuId(cpu as u16)) {
            for strand in 0..self.home(home).strands.len() {
                let by = self.partner(home, self.home(home).strands[strand].by);
                self.parts[by.index()].strands.push((home, strand));
            }
        }
    }

    pub(super) fn cpus(&self) -> usize {
        self.parts.len()
    }

    /// Returns the operations that a CPU performs, in the order of time.
    pub(super) fn steps(&self, cpu: CpuId) -> Steps<'_> {
        let sequence = |&(home, strand): &(CpuId, usize)| {
            let recorded = self.part(home).recorded.clone();
            let operations = self.home(home).strands[strand].around(&recorded);
            Sequence { home, recorded, operations }
        };
        Steps::new(self, self.part(cpu).strands.iter().map(sequence).collect())
    }

    pub(super) fn pending(&self, home: CpuId) -> &[(u32, Start)] {
        &self.part(home).pending
    }

    pub(super) fn timers(&self, home: CpuId) -> usize {
        self.home(home).timers.len()
    }

    pub(super) fn timer(&self, home: CpuId, slot: u32) -> &Timer {
        &self.home(home).timers[slot as usize]
    }

    pub(super) fn expiries(&self, home: CpuId, slot: u32) -> Range<u32> {
        let (timer, recorded) = (self.timer(home, slot), &self.part(home).recorded);
        timer.expired_before(recorded.start)..timer.expired_before(recorded.end)
    }

    /// Converts a time of the trace to the simulated clock. The difference depends on `home`, the
    /// simulated CPU that owns the timer.
    pub(super) fn moved(&self, home: CpuId, at: Ns) -> Ns {
        if at == Ns::NEVER {
            return at;
        }
        let moved = i128::from(at.0) - self.part(home).shift;
        Ns(u64::try_from(moved.max(0)).unwrap_or(u64::MAX))
    }

    /// Returns the simulated CPU that performs the operations on timers of `home` that the trace's
    /// CPU `of_trace` performed: one of the simulated CPUs that repeat `of_trace`, drawn at random
    /// but always the same.
    pub(super) fn partner(&self, home: CpuId, of_trace: CpuId) -> CpuId {
        if self.part(home).source == of_trace {
            return home;
        }
        let Some(players) = self.players.get(of_trace.index()).filter(|all| !all.is_empty()) else {
            return home;
        };
        let mix = self.seed << 32 | u64::from(home.0) << 16 | u64::from(of_trace.0);
        let mut random = Random::new(mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let place = random.below(players.len() as u64);
        CpuId(players[place as usize])
    }

    fn part(&self, cpu: CpuId) -> &Part {
        &self.parts[cpu.index()]
    }

    fn home(&self, cpu: CpuId) -> &Home {
        &self.homes[self.part(cpu).source.index()]
    }
}

/// Returns the slots of the timers that are pending at a time, each with how it was armed.
fn pending(streams: &Streams, source: CpuId, at: Ns) -> Vec<(u32, Start)> {
    let timers = &streams.homes[source.index()];
    let pending = streams.pending(source, at).into_iter();
    let slot = |(timer, arming)| Some((timers.binary_search(&timer).ok()? as u32, arming));
    pending.filter_map(slot).collect()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Ns,
    pub(super) home: CpuId,
    pub(super) slot: u32,
    pub(super) what: What,
    pub(super) expiry: u32,
}

/// The steps of one simulated CPU, in order of time. Steps at one time are ordered by the CPU that
/// owns the timer, then as they were recorded.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    layout: &'a Layout,
    sequences: Vec<Sequence<'a>>,
    next: BinaryHeap<Reverse<(Ns, CpuId, u32, usize)>>,
}

#[derive(Debug)]
struct Sequence<'a> {
    home: CpuId,
    recorded: Range<Ns>,
    /// All operations recorded in the interval `recorded`, and possibly others, which are skipped.
    operations: &'a [Operation],
}

impl<'a> Steps<'a> {
    fn new(layout: &'a Layout, sequences: Vec<Sequence<'a>>) -> Steps<'a> {
        let mut steps = Steps { layout, sequences, next: BinaryHeap::new() };
        for place in 0..steps.sequences.len() {
            let next = steps.head(place);
            steps.next.extend(next.map(Reverse));
        }
        steps
    }

    /// Skips operations of a sequence that were recorded outside of its interval `recorded`.
    /// Returns the sort key of the next operation: its time, home, index and sequence.
    fn head(&mut self, place: usize) -> Option<(Ns, CpuId, u32, usize)> {
        let Sequence { home, recorded, operations } = &mut self.sequences[place];
        let skipped = operations.iter().position(|it| recorded.contains(&it.recorded))?;
        *operations = &operations[skipped..];
        let first = operations.first()?;
        Some((self.layout.moved(*home, first.at), *home, first.place, place))
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let &Reverse((at, home, _, place)) = self.next.peek()?;
        let (Operation { slot, what, expiry, .. }, rest) =
            self.sequences[place].operations.split_first()?;
        self.sequences[place].operations = rest;
        let next = self.head(place);
        // Replacing the top of the heap is cheaper than a pop and a push.
        if let Some(mut first) = self.next.peek_mut() {
            match next {
                Some(next) => *first = Reverse(next),
                None => _ = PeekMut::pop(first),
            }
        }
        Some(Step { at, home, slot: *slot, what: *what, expiry: *expiry })
    }
}
