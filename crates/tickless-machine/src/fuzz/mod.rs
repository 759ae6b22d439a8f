//! Random tests of the timer code on random simulated machines, with injected faults. One test run
//! is a *history*; an *oracle* checks each callback and each result of a call in it.
//!
//! A seed decides everything: the machine (2 to 64 CPUs), the settings, the timers, what each CPU's
//! program does with its own timers, how long callbacks take, and the faults. A history begins with
//! the *safety phase*, in which faults are injected. No faults are injected in the *liveness phase*
//! that follows: every timer that is still armed must fire in bounded time.
//!
//! The checkers are independent of the code under test. They see only the calls, their results, and
//! which callbacks ran:
//!
//! - expiry: no callback runs before its time, without an arming, or after a cancel of its arming;
//!   no timer is lost, and none is late after the last fault;
//! - cancel: the result of a cancel is what has happened; after a cancel that waits the callback is
//!   not running; a callback never overlaps itself;
//! - locks: a CPU never holds two; it holds one when it programs a timer device, and none when it
//!   interrupts another CPU or runs a callback;
//! - idle: no CPU sleeps through the first timer of its base;
//! - bases: [`Bases::check`](tickless_core::bases::Bases::check) succeeds;
//! - the run ends: no program waits forever.

// The guarantees that this checks, by their numbers in the contract: for expiry W1 (never early),
// X10 (no callback of a cancelled arming), D8 and R13 (no timer or event lost); for cancelling X1
// (waits for the callback), X2 (callbacks do not overlap); for idle CPUs R1 and R6 (the device is
// armed for the first timer).

mod oracle;
mod program;

use crate::engine::{Ended, Machine};
use crate::fault::FaultPlan;
use crate::os::{Class, Clocked, Config, IdleSleep, IdleTick, Kernel, Skew};
use crate::random::Random;
use crate::spec::Spec;
use oracle::{Oracle, TestTimer, test_timer};
use program::Program;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use tickless_core::bases::{Deferral, Settings, WheelEvents};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};

pub const MACHINE: &str = "haswell-ex-4s";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct History {
    pub cpus: u16,
    pub armed: u64,
    pub fired: u64,
    pub cancelled: u64,
    pub faults: FaultCounts,
    /// The engine's hash over all events of the run: two runs of one seed must have the same.
    pub digest: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts {
    pub offline: u64,
    pub deaths: u64,
    pub deaths_in_callbacks: u64,
    pub lost: u64,
    pub late: u64,
    /// How often a CPU was stopped for a while, as a hypervisor stops a virtual CPU.
    pub thefts: u64,
    pub wrong_times: u64,
    pub noticed: u64,
}

#[derive(Debug)]
pub struct Violation {
    pub seed: u64,
    pub at: Ns,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { seed, at, what } = self;
        write!(
            f,
            "at {at:?}: {what}; again with: TICKLESS_SEED={seed} cargo test -p tickless-machine \
             --test all fuzz"
        )
    }
}

impl std::error::Error for Violation {}

pub(crate) const SAFE_UNTIL: Ns = Ns::from_ms(30);
/// No timer is armed for a time that is further in the future than this.
const FARTHEST: Ns = Ns::from_ms(8);
/// A timer that fires later than this breaks a rule. It allows for a coarse timer's granularity, a
/// tick, the callbacks that run before, and the rest of the last fault.
const LATE_MAX: Ns = Ns::from_ms(12);
/// The time by which every timer that was armed in the safety phase must have fired.
const CHECK_AT: Ns = SAFE_UNTIL.after(FARTHEST).after(LATE_MAX);
/// A CPU that must stay off for the rest of the test run is switched off until this time.
const LAST_RETURN: Ns = CHECK_AT.after(Ns::from_ms(10));
/// How late a timer interrupt may be before another CPU treats it as lost.
const GRACE: Ns = Ns::from_ms(2);

/// Runs the random test of a seed, on a machine with the prices of `spec` and random numbers of
/// sockets and cores. Fails with the first broken rule.
pub fn history(spec: &Spec, seed: u64) -> Result<History, Violation> {
    let oracle = Rc::new(Oracle::default());
    let run = run(spec, seed, &oracle);
    let found = oracle.take_violation();
    let violation = |at, what| Violation { seed, at, what };
    match (found, run) {
        (Some((at, what)), _) => Err(violation(at, what)),
        (None, Err(error)) => Err(violation(Ns::ZERO, error.to_string())),
        (None, Ok(history)) => Ok(history),
    }
}

fn run(spec: &Spec, seed: u64, oracle: &Rc<Oracle>) -> io::Result<History> {
    let mut random = Random::new(seed);
    let (mut machine, cpus) = draw_machine(spec, &mut random);
    machine.inject(FaultPlan::draw(&mut random, &oracle.faults));
    let config = draw_config(&mut random);
    let kernel = Kernel::boot(&mut machine, config)?;
    if config.timers.deferral != Deferral::None {
        kernel.start_expirers(&mut machine, Class::Fifo(1))?;
    }
    check_sleeps(&kernel, oracle);
    let left = Rc::new(Cell::new(cpus));
    let mut timers = Vec::new();
    for _ in 0..cpus {
        let count = 1 + random.below(6);
        timers.push((0..count).map(|_| test_timer(&kernel, oracle, &mut random)).collect());
    }
    let timers: Rc<Vec<Vec<TestTimer>>> = Rc::new(timers);
    for cpu in 0..cpus {
        let program = Program {
            kernel: Rc::clone(&kernel),
            oracle: Rc::clone(oracle),
            timers: Rc::clone(&timers),
            left: Rc::clone(&left),
            random: RefCell::new(Random::new(random.draw())),
            cpu: CpuId(cpu),
            cpus,
            // If the tick expires the timer wheel, a base must not go offline while its CPU runs:
            // the tick is itself a timer of that base. It would move to another CPU and no longer
            // expire this CPU's wheel. A CPU that is switched off stops its tick before and
            // restarts it afterwards.
            bases_go_offline: config.timers.wheel == WheelEvents::Device,
        };
        kernel.spawn(&mut machine, Class::Fair, Some(CpuId(cpu)), move || program.run())?;
    }
    let ended = machine.run(Ns::from_secs(5));
    if ended != Ended::Stopped {
        oracle.fail(format!("{} programs wait forever: {ended:?}", left.get()));
    }
    let digest = machine.digest();
    oracle.count_noticed(&kernel);
    if oracle.has_violation() {
        // A rule was broken, so the state may be inconsistent: leak it, so that no destructor runs
        // on it.
        std::mem::forget((machine, timers, kernel));
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
    // Without an expiry thread, the tick cannot expire the timer wheel, so the timer device must.
    let wheel = if deferral == Deferral::None || pick(2) == 0 {
        WheelEvents::Device
    } else {
        WheelEvents::Tick
    };
    let policy = Policy::ALL[pick(3) as usize];
    // The tick may stop on idle CPUs only if it does not expire the timer wheel.
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

/// Installs a check that an idle CPU wakes when the first timer of its base is due. It applies only
/// after the last fault.
fn check_sleeps(kernel: &Rc<Kernel>, oracle: &Rc<Oracle>) {
    const WAKING_MAX: Ns = Ns::from_ms(1);
    let oracle = Rc::clone(oracle);
    kernel.check_sleeps(move |sleep: IdleSleep| {
        let is_safe = sleep.from > SAFE_UNTIL.after(LATE_MAX);
        if is_safe && sleep.to > sleep.earliest.after(WAKING_MAX) {
            oracle.fail(format!("slept through a timer: {sleep:?}"));
        }
    });
}
