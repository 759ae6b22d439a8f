//! Which simulated CPU performs what, and when.

use tickless_core::time::{CpuId, Ns};
use tickless_machine::random::Random;
use tickless_trace::replay::streams::{Arming, Streams, What};

/// Nothing is expired later than this without somebody having a look: what the core has not fired
/// by then is done as the kernel did it.
const CATCHES_UP: Ns = Ns(200_000);

/// A trace's operations on the CPUs of a machine.
#[derive(Debug)]
pub(super) struct Layout {
    /// When the measured stretch begins, and when it ends, on the machine's clock.
    pub(super) begins: Ns,
    pub(super) ends: Ns,
    /// By CPU, in order of time.
    pub(super) steps: Vec<Vec<Step>>,
    /// By CPU: the timers of the trace that are at home there. A timer's slot is its place here.
    pub(super) timers: Vec<Vec<u32>>,
    /// By CPU: the slots of timers that are pending when it begins, and their armings.
    pub(super) pending: Vec<Vec<(u32, Arming)>>,
    /// By CPU: which CPU of the trace it plays.
    sources: Vec<CpuId>,
    /// By CPU: what is taken from the trace's time.
    shifts: Vec<i128>,
    /// By CPU of the trace: who plays it.
    players: Vec<Vec<u16>>,
    seed: u64,
}

/// Something that one CPU does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Ns,
    /// The CPU whose timer it is: the timer's home on the machine.
    pub(super) home: CpuId,
    pub(super) slot: u32,
    pub(super) what: What,
    /// Which of the timer's expiries it is, if it is one.
    pub(super) expiry: u32,
}

/// The machine's clock begins within so many ticks of the trace's own: the wheel's granules of up
/// to this many ticks lie as they lay when it was recorded, and simulated time stays small.
const GRANULE_TICKS: u64 = 1 << 18;

impl Layout {
    /// Lays `window` of a trace onto so many CPUs.
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
        let drawn: Vec<(CpuId, u64)> = (0..cpus).map(|cpu| draw(cpu, &mut random)).collect();
        let mut players = vec![Vec::new(); usize::from(of_trace)];
        for (cpu, (source, _)) in drawn.iter().enumerate() {
            players[source.index()].push(cpu as u16);
        }
        // Timers are armed before the stretch begins, on a clock that begins at zero.
        let granule = GRANULE_TICKS * tick;
        let begins = Ns(streams.begins.0 % granule + granule);
        let earlier = i128::from(streams.begins.0) - i128::from(begins.0);
        let shift = |&(_, phase): &(CpuId, u64)| i128::from(phase) + earlier;
        let mut layout = Layout {
            begins,
            ends: begins.after(window),
            steps: vec![Vec::new(); usize::from(cpus)],
            timers: Vec::new(),
            pending: Vec::new(),
            sources: drawn.iter().map(|(source, _)| *source).collect(),
            shifts: drawn.iter().map(shift).collect(),
            players,
            seed,
        };
        for (cpu, &(_, phase)) in drawn.iter().enumerate() {
            let from = streams.begins.after(Ns(phase));
            layout.take(streams, CpuId(cpu as u16), from, from.after(window));
        }
        for steps in &mut layout.steps {
            steps.sort_by_key(|step| step.at);
        }
        layout
    }

    /// Adds the lives of the timers at home on a CPU, between two moments of the trace.
    fn take(&mut self, streams: &Streams, home: CpuId, from: Ns, to: Ns) {
        let source = self.sources[home.index()];
        let mut timers = Vec::new();
        let mut slots = vec![None; streams.families.len()];
        let mut slot_of = |timer: u32| {
            *slots[timer as usize].get_or_insert_with(|| {
                timers.push(timer);
                timers.len() as u32 - 1
            })
        };
        let pending = streams.pending(source, from).into_iter();
        self.pending.push(pending.map(|(timer, arming)| (slot_of(timer), arming)).collect());
        let mut expiries = vec![0; streams.families.len()];
        let life = &streams.lives[source.index()];
        let first = life.partition_point(|event| event.at < from);
        for event in life[first..].iter().take_while(|event| event.at < to) {
            let mut at = self.moved(home, event.at);
            let mut expiry = 0;
            if let What::Expire(_) = event.what {
                let count = &mut expiries[event.timer as usize];
                expiry = *count;
                *count += 1;
                at = at.after(CATCHES_UP);
            }
            let by = self.partner(home, event.cpu);
            let step = Step { at, home, slot: slot_of(event.timer), what: event.what, expiry };
            self.steps[by.index()].push(step);
        }
        self.timers.push(timers);
    }

    /// A moment of the trace on the clock of the machine, for the timers at home on a CPU.
    pub(super) fn moved(&self, home: CpuId, at: Ns) -> Ns {
        if at == Ns::NEVER {
            return at;
        }
        let moved = i128::from(at.0) - self.shifts[home.index()];
        Ns(u64::try_from(moved.max(0)).unwrap_or(u64::MAX))
    }

    /// Who does for this CPU what another CPU of the trace did: one that plays that.
    pub(super) fn partner(&self, home: CpuId, of_trace: CpuId) -> CpuId {
        if self.sources[home.index()] == of_trace {
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

    /// How many operations are on a timer that is at home on another CPU.
    pub(super) fn remote(&self) -> usize {
        let of = |(cpu, steps): (usize, &Vec<Step>)| {
            steps.iter().filter(|step| step.home.index() != cpu).count()
        };
        self.steps.iter().enumerate().map(of).sum()
    }

    /// How many operations there are.
    pub(super) fn len(&self) -> usize {
        self.steps.iter().map(Vec::len).sum()
    }
}
