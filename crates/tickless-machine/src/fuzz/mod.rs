//! The simulator as a tester: random histories of the timer core on random machines.
//!
//! A seed decides everything: the machine (2 to 64 CPUs), the settings, which timers there are,
//! what each CPU's program does with its own, how long callbacks take, and what goes wrong. First
//! comes the *safety phase*, with faults; then the *liveness phase*, without: everything that is
//! still armed has to fire in bounded time.
//!
//! | file | holds |
//! |---|---|
//! | here | the phases, and what a history comes to |
//! | `plan` | late, lost and slow interrupts, stolen CPUs, a clock that stands still or jumps |
//! | `program` | what each CPU does with its timers; bases and CPUs that go and come back |
//! | `oracle` | what was asked for and what came of it: the checkers |
//!
//! The checkers stand outside of the code under test. They know only what was asked for, what
//! came back, and which callbacks ran:
//!
//! - expiry: no callback before its time (W1), none that nobody asked for, none of a cancelled
//!   arming (X10), nothing lost (D8, R13), nothing late once the faults are over;
//! - cancel: what a cancel says is what has happened; after one that waits the callback is not
//!   running (X1); a callback never overlaps itself (X2);
//! - locks: one at a time; devices are told under one, nobody is kicked or called under one;
//! - idle: no CPU sleeps through the first timer of its base (R1, R6);
//! - bases: [`Bases::check`](tickless_core::bases::Bases::check) finds nothing;
//! - the run comes to its end: nobody waits for ever.

mod oracle;
mod plan;
mod program;

use crate::engine::{Ended, Machine};
use crate::os::{Class, Clocked, Config, IdleSleep, IdleTick, Kernel, Skew};
use crate::random::Random;
use crate::spec::Spec;
use oracle::{Oracle, Subject, subject};
use plan::Storm;
use program::Program;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use tickless_core::bases::{Deferral, Settings, WheelEvents};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};

/// The machine that histories run on, with other numbers of sockets and cores.
pub const MACHINE: &str = "haswell-ex-4s";

/// What a history came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// CPUs of its machine.
    pub cpus: u16,
    /// Armings.
    pub armed: u64,
    /// Callbacks.
    pub fired: u64,
    /// Armings that were cancelled.
    pub cancelled: u64,
    /// What went wrong on purpose.
    pub faults: FaultCounts,
    /// What the engine did.
    pub digest: u64,
}

/// What went wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts {
    /// Bases that went offline while their CPU stayed.
    pub offline: u64,
    /// CPUs that were switched off.
    pub deaths: u64,
    /// Those of them that were in a callback.
    pub deaths_in_callbacks: u64,
    /// Events and kicks that never came.
    pub lost: u64,
    /// Events and interrupts that came late.
    pub late: u64,
    /// Times a CPU was taken away from its program, or from a callback.
    pub thefts: u64,
    /// Readings of a clock that stood still or had jumped.
    pub wrong_times: u64,
    /// Lost events that somebody noticed.
    pub noticed: u64,
}

impl FaultCounts {
    /// How many there were.
    pub fn total(&self) -> u64 {
        self.offline + self.deaths + self.lost + self.late + self.thefts + self.wrong_times
    }

    /// The sum over two histories.
    #[must_use]
    pub fn plus(self, other: FaultCounts) -> FaultCounts {
        FaultCounts {
            offline: self.offline + other.offline,
            deaths: self.deaths + other.deaths,
            deaths_in_callbacks: self.deaths_in_callbacks + other.deaths_in_callbacks,
            lost: self.lost + other.lost,
            late: self.late + other.late,
            thefts: self.thefts + other.thefts,
            wrong_times: self.wrong_times + other.wrong_times,
            noticed: self.noticed + other.noticed,
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let History { cpus, armed, fired, cancelled, faults, .. } = self;
        write!(
            f,
            "{cpus} CPUs, {armed} armed, {fired} fired, {cancelled} cancelled; {} CPUs died, {} \
             of them in a callback, {} bases went offline, {} events lost ({} noticed), {} late, \
             {} CPUs stolen, {} wrong times",
            faults.deaths,
            faults.deaths_in_callbacks,
            faults.offline,
            faults.lost,
            faults.noticed,
            faults.late,
            faults.thefts,
            faults.wrong_times
        )
    }
}

/// What went wrong in a history, and how to see it again.
#[derive(Debug)]
pub struct Violation {
    /// The history's seed.
    pub seed: u64,
    /// When it was noticed.
    pub at: Ns,
    /// What it was.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { seed, at, what } = self;
        write!(f, "at {at:?}: {what}; again with: tickless machines --fuzz {seed}")
    }
}

impl std::error::Error for Violation {}

/// When the safety phase ends.
const SAFE_UNTIL: Ns = Ns::from_ms(30);
/// Nothing is armed for longer than this.
const FARTHEST: Ns = Ns::from_ms(8);
/// A coarse timer's granule there, a tick, the callbacks before it, and what still lasts of the
/// last fault.
const LATE_MAX: Ns = Ns::from_ms(12);
/// When everything that was armed in the safety phase has to have fired.
const CHECK_AT: Ns = SAFE_UNTIL.after(FARTHEST).after(LATE_MAX);
/// When the CPUs come back that had died for the rest of the history.
const LAST_RETURN: Ns = CHECK_AT.after(Ns::from_ms(10));
/// How late an event may be before somebody calls it lost.
const GRACE: Ns = Ns::from_ms(2);

/// Runs the history of a seed, on a machine like `spec` with other numbers of sockets and cores.
pub fn history(spec: &Spec, seed: u64) -> Result<History, Violation> {
    let oracle = Rc::new(Oracle::default());
    let run = run(spec, seed, &oracle);
    let found = oracle.take_violation();
    let wrong = |at, what| Violation { seed, at, what };
    match (found, run) {
        (Some((at, what)), _) => Err(wrong(at, what)),
        (None, Err(error)) => Err(wrong(Ns::ZERO, error.to_string())),
        (None, Ok(history)) => Ok(history),
    }
}

fn run(spec: &Spec, seed: u64, oracle: &Rc<Oracle>) -> io::Result<History> {
    let mut random = Random::new(seed);
    let (mut machine, cpus) = draw_machine(spec, &mut random);
    machine.inject(Storm::draw(&mut random, &oracle.faults));
    let config = draw_config(&mut random);
    let kernel = Kernel::boot(&mut machine, config)?;
    if config.timers.deferral != Deferral::None {
        kernel.start_expirers(&mut machine, Class::Fifo(1))?;
    }
    check_sleeps(&kernel, oracle);
    let left = Rc::new(Cell::new(cpus));
    let mut subjects = Vec::new();
    for _ in 0..cpus {
        let count = 1 + random.below(6);
        subjects.push((0..count).map(|_| subject(&kernel, oracle, &mut random)).collect());
    }
    let subjects: Rc<Vec<Vec<Subject>>> = Rc::new(subjects);
    for cpu in 0..cpus {
        let program = Program {
            kernel: Rc::clone(&kernel),
            oracle: Rc::clone(oracle),
            subjects: Rc::clone(&subjects),
            left: Rc::clone(&left),
            random: RefCell::new(Random::new(random.draw())),
            cpu: CpuId(cpu),
            cpus,
            // A tick would move away with its base, and with it what the wheel rides on. A CPU
            // that is switched off takes its tick along and starts it anew.
            bases_go: config.timers.wheel == WheelEvents::Device,
        };
        kernel.spawn(&mut machine, Class::Fair, Some(CpuId(cpu)), move || program.run())?;
    }
    let ended = machine.run(Ns::from_secs(5));
    if ended != Ended::Stopped {
        oracle.fail(format!("{} programs wait for ever: {ended:?}", left.get()));
    }
    let digest = machine.digest();
    oracle.count_noticed(&kernel);
    if oracle.has_violation() {
        // Timers may be anywhere; nobody touches them any more.
        std::mem::forget((machine, subjects, kernel));
    } else {
        machine.finish();
    }
    Ok(oracle.history(cpus, digest))
}

fn draw_machine(spec: &Spec, random: &mut Random) -> (Machine, u16) {
    let (sockets, cores) = (1 + random.below(4), 1 + random.below(16));
    let cores = if sockets * cores < 2 { 2 } else { cores };
    let spec = spec
        .with("topology.sockets", sockets as f64)
        .with("topology.cores_per_socket", cores as f64)
        .with("topology.sockets_per_group", 1.0 + random.below(sockets) as f64);
    let cpus = spec.costs().topology.cpus();
    (Machine::new(spec.costs()), cpus)
}

fn draw_config(random: &mut Random) -> Config {
    let mut pick = |end| random.below(end);
    let deferral = [Deferral::None, Deferral::OnExpiry, Deferral::EveryTick][pick(3) as usize];
    // Without its own thread the wheel needs the device.
    let wheel = if deferral == Deferral::None || pick(2) == 0 {
        WheelEvents::Device
    } else {
        WheelEvents::Tick
    };
    let policy = Policy::ALL[pick(3) as usize];
    // A tick that stops cannot be what the wheel rides on.
    let stops = wheel == WheelEvents::Device && pick(2) == 0;
    Config {
        timers: Settings { policy, deferral, wheel, ..Settings::default() },
        tick: Ns::from_ms(1),
        skew: if pick(2) == 0 {
            Skew::None
        } else {
            Skew::Drawn { most: Ns(37_000), seed: pick(64) }
        },
        idle: if stops { IdleTick::Stops } else { IdleTick::Keeps },
        grace: GRACE,
        clocked: Clocked::FromSwitch,
        slice: None,
    }
}

/// Once the faults are over, a CPU that sleeps wakes when its base's first timer is due.
fn check_sleeps(kernel: &Rc<Kernel>, oracle: &Rc<Oracle>) {
    const WAKING_MAX: Ns = Ns::from_ms(1);
    let oracle = Rc::clone(oracle);
    kernel.check_sleeps(move |slept: IdleSleep| {
        let is_safe = slept.from > SAFE_UNTIL.after(LATE_MAX);
        if is_safe && slept.to > slept.earliest.after(WAKING_MAX) {
            oracle.fail(format!("slept through a timer: {slept:?}"));
        }
    });
}
