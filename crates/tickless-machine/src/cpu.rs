//! One CPU: its clock, what it does, what it may do while idle, and how fast its thread runs
//! beside its siblings.

use crate::coherence::LineId;
use crate::engine::{FiberId, WATCHED_MAX};
use crate::fiber;
use crate::irq::Inbox;
use crate::ps::Ps;
use crate::world::{World, act, with};
use tickless_core::time::CpuId;

/// What a CPU is at.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Mode {
    /// Its fiber does something that has a price.
    Running,
    /// Its fiber computes.
    Working(Segment),
    /// Its fiber waits for a time.
    Waiting(Ps),
    /// It waits for an interrupt.
    Halted {
        /// Since when.
        since: Ps,
        /// How long it will take to come back.
        exit: Ps,
    },
    /// It waits for a line to be written.
    Spinning,
    /// Nothing.
    Off,
}

/// A stretch of computing at one speed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Segment {
    since: Ps,
    /// What was to do at the beginning, at full speed.
    work: Ps,
    /// How fast it goes; 1 is a thread alone on its core.
    rate: f64,
    /// It is over then, done or not.
    limit: Ps,
    end: Ps,
}

/// A CPU.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub clock: Ps,
    pub fiber: FiberId,
    pub mode: Mode,
    pub inbox: Inbox,
    /// Locks that it holds.
    pub locks: u32,
    /// How often interrupts are disabled.
    pub masked: u32,
    /// Interrupt handlers under way on its fiber.
    pub handlers: u32,
    /// Which of its waits this is.
    pub wait: u32,
    /// When its last store is visible.
    pub drained: Ps,
    watched: Watched,
    halted: Ps,
    interrupts: u64,
    watts: f64,
    joules: f64,
}

/// The lines that a waiting loop has read, and their versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    lines: [(LineId, u32); WATCHED_MAX],
    /// More than the maximum: too many.
    count: usize,
}

impl Watched {
    const NONE: Watched = Watched { lines: [(0, 0); WATCHED_MAX], count: 0 };

    /// Empty when there were too many.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(LineId, u32)> {
        let count = if self.count > WATCHED_MAX { 0 } else { self.count };
        self.lines[..count].iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// What a CPU did.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// Its clock.
    pub clock: Ps,
    /// How much of that it was halted.
    pub halted: Ps,
    /// Interrupts it took.
    pub interrupts: u64,
    /// What it used while halted, in joules.
    pub idle_joules: f64,
}

impl Cpu {
    pub(crate) fn new() -> Cpu {
        Cpu {
            clock: Ps::ZERO,
            fiber: FiberId(u32::MAX),
            mode: Mode::Off,
            inbox: Inbox::default(),
            locks: 0,
            masked: 0,
            handlers: 0,
            wait: 0,
            drained: Ps::ZERO,
            watched: Watched::NONE,
            halted: Ps::ZERO,
            interrupts: 0,
            watts: 0.0,
            joules: 0.0,
        }
    }

    /// When it acts next.
    #[inline]
    pub(crate) fn key(&self) -> Ps {
        let interrupt = if self.masked == 0 { self.inbox.next() } else { Ps::NEVER };
        match self.mode {
            Mode::Running => self.clock,
            Mode::Working(segment) => self.clock.max(segment.end.min(interrupt)),
            Mode::Waiting(until) => self.clock.max(until.min(interrupt)),
            // Halting and unmasking are one instruction.
            Mode::Halted { .. } => self.clock.max(self.inbox.next()),
            Mode::Spinning => self.clock.max(interrupt),
            Mode::Off => Ps::NEVER,
        }
    }

    /// Is an interrupt due that may be delivered?
    #[inline]
    pub(crate) fn is_interrupted(&self) -> bool {
        self.masked == 0 && self.inbox.next() <= self.clock
    }

    /// Remembers that a line was read: a waiting loop may turn on it.
    #[inline]
    pub(crate) fn watch(&mut self, line: LineId, version: u32) {
        let Watched { lines, count } = &mut self.watched;
        if let Some(seen) = lines.iter_mut().take(*count).find(|seen| seen.0 == line) {
            seen.1 = version;
        } else {
            if let Some(place) = lines.get_mut(*count) {
                *place = (line, version);
            }
            *count = (*count + 1).min(WATCHED_MAX + 1);
        }
    }

    pub(crate) fn take_watched(&mut self) -> Watched {
        std::mem::replace(&mut self.watched, Watched::NONE)
    }

    pub(crate) fn wake_from_spinning(&mut self, at: Ps) {
        self.clock = self.clock.max(at);
        self.mode = Mode::Running;
    }

    pub(crate) fn count_interrupt(&mut self) {
        self.interrupts += 1;
    }

    /// Goes on with another fiber. Returns what this one's has to find again.
    pub(crate) fn hand_over(&mut self, fiber: FiberId) -> (u32, u32) {
        self.fiber = fiber;
        (std::mem::take(&mut self.masked), std::mem::take(&mut self.handlers))
    }

    pub(crate) fn take_over(&mut self, (masked, handlers): (u32, u32)) {
        self.masked = masked;
        self.handlers = handlers;
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            clock: self.clock,
            halted: self.halted,
            interrupts: self.interrupts,
            idle_joules: self.joules,
        }
    }
}

impl World {
    /// How fast each thread of this CPU's core runs now.
    fn rate(&self, cpu: usize) -> f64 {
        let busy = self.busy[self.costs.topology.core(CpuId(cpu as u16)) as usize].max(1);
        let rates = &self.costs.smt_rates;
        let all = rates.get(busy as usize - 1).or(rates.last()).copied().unwrap_or(1.0);
        all / f64::from(busy)
    }

    /// What this CPU's core has used up to now, at the load that it had.
    pub(crate) fn meter(&mut self, cpu: usize) {
        let core = self.costs.topology.core(CpuId(cpu as u16)) as usize;
        let now = self.cpus[cpu].clock;
        let used = &mut self.used[core];
        let rates = &self.costs.smt_rates;
        let all = rates.last().copied().unwrap_or(1.0);
        let busy = usize::from(self.busy[core]);
        let done = busy.checked_sub(1).and_then(|at| rates.get(at)).copied();
        let share = if busy == 0 { 0.0 } else { done.unwrap_or(all) / all };
        let watts = self.costs.power.fixed + self.costs.power.busy * share;
        used.joules += watts * now.since(used.until).as_ns_f64() * 1e-9;
        used.until = used.until.max(now);
    }

    /// What the whole machine has used.
    pub(crate) fn joules(&mut self) -> f64 {
        let end = self.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(Ps::ZERO);
        let idle: f64 = self.cpus.iter().map(|cpu| cpu.joules).sum();
        let cores = self.used.len();
        for core in 0..cores {
            // Any of its CPUs stands for it.
            let clock = std::mem::replace(&mut self.cpus[core].clock, end);
            self.meter(core);
            self.cpus[core].clock = clock;
        }
        idle + self.used.iter().map(|used| used.joules).sum::<f64>()
    }

    pub(crate) fn leave_core(&mut self, cpu: usize) {
        self.meter(cpu);
        let core = self.costs.topology.core(CpuId(cpu as u16)) as usize;
        self.busy[core] = self.busy[core].saturating_sub(1);
        self.rescale(cpu);
    }

    fn join_core(&mut self, cpu: usize) {
        self.meter(cpu);
        self.busy[self.costs.topology.core(CpuId(cpu as u16)) as usize] += 1;
        self.rescale(cpu);
    }

    /// The number of busy threads of this CPU's core has changed: what its siblings still have
    /// to do goes at another speed from now on.
    fn rescale(&mut self, cpu: usize) {
        let topology = self.costs.topology;
        if topology.threads_per_core == 1 {
            return;
        }
        let now = self.cpus[cpu].clock;
        let rate = self.rate(cpu);
        for sibling in topology.threads(topology.core(CpuId(cpu as u16))) {
            let other = &mut self.cpus[sibling.index()];
            if sibling.index() != cpu
                && let Mode::Working(segment) = other.mode
                && segment.rate != rate
            {
                let from = now.max(segment.since);
                let work = segment.work - (from - segment.since).scaled(segment.rate);
                other.mode = Mode::Working(Segment::new(from, work, rate, segment.limit));
                self.reschedule(sibling.index());
            }
        }
    }

    /// Begins to compute. True: it is over already, nobody else came first.
    fn begin_work(&mut self, cpu: usize, work: Ps, limit: Ps) -> bool {
        self.count(cpu);
        if let Some(faults) = &mut self.faults {
            let now = self.cpus[cpu].clock;
            let stolen = faults.steal(CpuId(cpu as u16), now.to_ns());
            self.cpus[cpu].clock = now + Ps::from_ns(stolen);
        }
        let segment = Segment::new(self.cpus[cpu].clock, work, self.rate(cpu), limit);
        let state = &mut self.cpus[cpu];
        let interrupt = if state.masked == 0 { state.inbox.next() } else { Ps::NEVER };
        if segment.end < limit && segment.end < self.horizon && segment.end < interrupt {
            state.clock = segment.end;
            return true;
        }
        state.mode = Mode::Working(segment);
        false
    }

    /// Returns what is left to compute.
    fn end_work(&mut self, cpu: usize) -> Ps {
        let state = &mut self.cpus[cpu];
        let Mode::Working(segment) = state.mode else { return Ps::ZERO };
        state.mode = Mode::Running;
        segment.left(state.clock)
    }

    fn begin_halt(&mut self, cpu: usize) {
        self.count(cpu);
        let state = &self.cpus[cpu];
        let sleep = state.inbox.timer().since(state.clock);
        let states = &self.costs.idle_states;
        let fits = states.iter().rev().find(|state| state.residency <= sleep);
        let (exit, watts) =
            fits.or(states.first()).map_or((Ps::ZERO, 0.0), |state| (state.exit, state.watts));
        let state = &mut self.cpus[cpu];
        state.mode = Mode::Halted { since: state.clock, exit };
        state.watts = watts;
        if let Some(trace) = &mut self.trace {
            trace.begin(state.clock, cpu, "halted");
        }
        self.leave_core(cpu);
    }

    fn end_halt(&mut self, cpu: usize) {
        let state = &mut self.cpus[cpu];
        let Mode::Halted { since, exit } = state.mode else { return };
        let slept = state.clock - since;
        state.halted += slept;
        state.joules += state.watts * slept.as_ns_f64() * 1e-9;
        state.clock += exit;
        if let Some(trace) = &mut self.trace {
            trace.end(state.clock, cpu);
        }
        state.mode = Mode::Running;
        self.join_core(cpu);
    }
}

impl Segment {
    fn new(since: Ps, work: Ps, rate: f64, limit: Ps) -> Segment {
        let end = (since + work.scaled(1.0 / rate)).min(limit.max(since));
        Segment { since, work, rate, limit, end }
    }

    fn left(&self, now: Ps) -> Ps {
        let is_over = now >= self.end && self.end < self.limit;
        if is_over { Ps::ZERO } else { self.work - (now - self.since).scaled(self.rate) }
    }
}

/// Computes for as long as `amount` takes a thread that is alone on its core. Interrupts are
/// handled meanwhile, and siblings slow it down. Nothing outside of a simulated CPU.
pub fn work(amount: Ps) {
    work_until(amount, Ps::NEVER);
}

/// The same, but only until a time. Returns what is left to be done.
pub fn work_until(amount: Ps, limit: Ps) -> Ps {
    let mut left = amount;
    while left > Ps::ZERO && crate::engine::clock() < limit {
        match act(|_, _| Ps::NEVER, |world, cpu| world.begin_work(cpu, left, limit)) {
            None | Some(true) => return Ps::ZERO,
            Some(false) => {}
        }
        fiber::suspend();
        left = with(|world| world.running.map(|cpu| world.end_work(cpu)))
            .flatten()
            .unwrap_or(Ps::ZERO);
    }
    left
}

/// Waits for an interrupt, in the deepest idle state that pays until the event device comes.
///
/// Call it with interrupts disabled, after the last look at whether there is work: what comes
/// in between ends it at once. It is delivered when they are enabled again.
pub fn halt() {
    if act(|_, _| Ps::ZERO, |world, cpu| world.begin_halt(cpu)).is_none() {
        return;
    }
    fiber::suspend();
    with(|world| {
        if let Some(cpu) = world.running {
            world.end_halt(cpu);
        }
    });
}

/// Switches the CPU that runs off until a time: its event device forgets what it was told, and
/// interrupts that reach it meanwhile are lost. Its program stands still. Call it with interrupts
/// disabled.
pub fn power_off(until: Ps) {
    let went = act(
        |_, _| Ps::ZERO,
        |world, cpu| {
            world.count(cpu);
            let state = &mut world.cpus[cpu];
            state.masked += 1;
            state.mode = Mode::Waiting(until);
            if let Some(trace) = &mut world.trace {
                trace.begin(state.clock, cpu, "off");
            }
            world.leave_core(cpu);
        },
    );
    if went.is_none() {
        return;
    }
    fiber::suspend();
    with(|world| {
        let Some(cpu) = world.running else { return };
        let state = &mut world.cpus[cpu];
        // Of what was to come before and came meanwhile it knows nothing.
        state.inbox.clear();
        state.masked = state.masked.saturating_sub(1);
        state.mode = Mode::Running;
        if let Some(trace) = &mut world.trace {
            trace.end(state.clock, cpu);
        }
        world.join_core(cpu);
    });
}

/// Waits for a time, busy as far as its siblings can tell. Interrupts are handled meanwhile.
/// Nothing outside of a simulated CPU.
pub fn wait_until(at: Ps) {
    loop {
        let waits = act(
            |_, _| Ps::NEVER,
            |world, cpu| {
                world.count(cpu);
                let state = &mut world.cpus[cpu];
                if state.clock >= at {
                    return false;
                }
                state.mode = Mode::Waiting(at);
                true
            },
        );
        if waits != Some(true) {
            return;
        }
        fiber::suspend();
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.mode = Mode::Running;
            }
        });
    }
}
