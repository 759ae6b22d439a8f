//! The assignment of a trace's operations to simulated CPUs and times.

use super::operations::{Home, Timer};
use super::steps::{Sequence, Steps};
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};
use tickless_machine::random::Random;
use tickless_trace::replay::streams::{Arming, Streams};

/// A trace's operations on the CPUs of a machine.
#[derive(Debug)]
pub(super) struct Layout {
    /// The beginning and the end of the measured stretch, on the machine's clock.
    pub(super) begins: Ns,
    pub(super) ends: Ns,
    /// The CPUs of the trace.
    homes: Vec<Home>,
    /// By CPU.
    parts: Vec<Part>,
    /// By CPU of the trace: the CPUs that repeat it.
    players: Vec<Vec<u16>>,
    seed: u64,
}

/// The part of one simulated CPU.
#[derive(Debug)]
struct Part {
    /// The CPU of the trace that it repeats.
    source: CpuId,
    /// The stretch of the trace that it repeats.
    recorded: Range<Ns>,
    /// The difference between the trace's clock and the machine's.
    shift: i128,
    /// The CPUs on whose timers it performs operations, with the strand of each.
    strands: Vec<(CpuId, usize)>,
    /// The slots of its timers that are pending at the beginning, and their armings.
    pending: Vec<(u32, Arming)>,
}

/// The machine's clock begins at the trace's time modulo this many ticks. So the wheel's granules
/// of up to this size are aligned as in the recording, and simulated time stays small.
const GRANULE_TICKS: u64 = 1 << 18;

impl Layout {
    /// Assigns `window` of a trace to this many CPUs.
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
        // Timers are armed before the stretch begins, so the clock must not begin at 0 there.
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

    /// Assigns each strand of operations on a CPU's timers to the CPU that performs it.
    fn hand_out(&mut self) {
        for home in (0..self.parts.len()).map(|cpu| CpuId(cpu as u16)) {
            for strand in 0..self.home(home).strands.len() {
                let by = self.partner(home, self.home(home).strands[strand].by);
                self.parts[by.index()].strands.push((home, strand));
            }
        }
    }

    /// The number of CPUs.
    pub(super) fn cpus(&self) -> usize {
        self.parts.len()
    }

    /// The steps of a CPU.
    pub(super) fn steps(&self, cpu: CpuId) -> Steps<'_> {
        let sequence = |&(home, strand): &(CpuId, usize)| {
            let recorded = self.part(home).recorded.clone();
            let operations = self.home(home).strands[strand].around(&recorded);
            Sequence { home, recorded, operations }
        };
        Steps::new(self, self.part(cpu).strands.iter().map(sequence).collect())
    }

    /// The slots of a CPU's timers that are pending when it begins, and their armings.
    pub(super) fn pending(&self, home: CpuId) -> &[(u32, Arming)] {
        &self.part(home).pending
    }

    /// The number of timers of a CPU.
    pub(super) fn timers(&self, home: CpuId) -> usize {
        self.home(home).timers.len()
    }

    /// A timer of a CPU.
    pub(super) fn timer(&self, home: CpuId, slot: u32) -> &Timer {
        &self.home(home).timers[slot as usize]
    }

    /// The places of a timer's expiries that are performed.
    pub(super) fn expiries(&self, home: CpuId, slot: u32) -> Range<u32> {
        let (timer, recorded) = (self.timer(home, slot), &self.part(home).recorded);
        timer.expired_before(recorded.start)..timer.expired_before(recorded.end)
    }

    /// Converts a time of the trace to the machine's clock, for the timers of a CPU.
    pub(super) fn moved(&self, home: CpuId, at: Ns) -> Ns {
        if at == Ns::NEVER {
            return at;
        }
        let moved = i128::from(at.0) - self.part(home).shift;
        Ns(u64::try_from(moved.max(0)).unwrap_or(u64::MAX))
    }

    /// The CPU that does for `home` what a CPU of the trace did: one that repeats that CPU.
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

    /// The CPU of the trace that a CPU repeats.
    fn home(&self, cpu: CpuId) -> &Home {
        &self.homes[self.part(cpu).source.index()]
    }
}

/// The slots of the timers of a CPU of the trace that are pending at a time.
fn pending(streams: &Streams, source: CpuId, at: Ns) -> Vec<(u32, Arming)> {
    let timers = &streams.homes[source.index()];
    let pending = streams.pending(source, at).into_iter();
    let slot = |(timer, arming)| Some((timers.binary_search(&timer).ok()? as u32, arming));
    pending.filter_map(slot).collect()
}
