//! Runs the history of a seed.

use super::faults::FaultPlan;
use super::oracle::{Oracle, TestTimer, test_timer};
use super::program::Program;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use tickless_core::bases::{Deferral, Settings, WheelEvents};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};
use tickless_machine::engine::{Ended, Machine};
use tickless_machine::os::{Class, Clocked, Config, IdleSleep, IdleTick, Kernel, Skew};
use tickless_machine::random::Random;
use tickless_machine::spec::Spec;

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
    pub suspends: u64,
    /// Suspends in which the counters move by less than the clock can see.
    pub stands: u64,
    /// Changes of the counters' rate.
    pub rates: u64,
    /// By how many thousandths the counters have become slower.
    pub slowed: u64,
    pub noticed: u64,
}

pub(super) const SAFE_UNTIL: Ns = Ns::from_ms(30);
/// No timer is armed for a time that is further in the future than this.
pub(super) const FARTHEST: Ns = Ns::from_ms(8);
/// A timer that fires later than this breaks a rule. It allows for a coarse timer's granularity, a
/// tick, the callbacks that run before, and the rest of the last fault.
pub(super) const LATE_MAX: Ns = Ns::from_ms(12);
/// The time by which every timer that was armed in the safety phase must have fired.
pub(super) const CHECK_AT: Ns = SAFE_UNTIL.after(FARTHEST).after(LATE_MAX);
/// A CPU that must stay off for the rest of the test run is switched off until this time.
pub(super) const LAST_RETURN: Ns = CHECK_AT.after(Ns::from_ms(10));
/// How late a timer interrupt may be before another CPU treats it as lost.
pub(super) const GRACE: Ns = Ns::from_ms(2);

/// Runs the history of a seed, on a machine with the prices of `spec` and random numbers of sockets
/// and cores. Returns the first broken rule, with the command that repeats the history.
pub fn history(spec: &Spec, seed: u64) -> Result<History, String> {
    let oracle = Rc::new(Oracle::default());
    let run = run(spec, seed, &oracle);
    let (at, what) = match (oracle.violation.take(), run) {
        (Some(violation), _) => violation,
        (None, Err(error)) => (Ns::ZERO, error.to_string()),
        (None, Ok(history)) => return Ok(history),
    };
    Err(format!(
        "at {at:?}: {what}; again with: TICKLESS_SEED={seed} cargo test -p tickless-machine \
         --test all fuzz"
    ))
}

fn run(spec: &Spec, seed: u64, oracle: &Rc<Oracle>) -> io::Result<History> {
    let mut random = Random::new(seed);
    let (mut machine, cpus) = draw_machine(spec, &mut random);
    machine.inject(FaultPlan::draw(&mut random, oracle));
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
            // expire this CPU's wheel. A CPU that is switched off stops its tick before.
            bases_go_offline: config.timers.wheel == WheelEvents::Device,
        };
        kernel.spawn(&mut machine, Class::Fair, Some(CpuId(cpu)), move || program.run())?;
    }
    let ended = machine.run(Ns::from_secs(5));
    if ended != Ended::Stopped {
        oracle.fail(format!("{} programs wait forever: {ended:?}", left.get()));
    }
    let digest = machine.digest();
    if oracle.violation.borrow().is_some() {
        // A rule was broken, so the state may be inconsistent: leak it: no destructor may run.
        std::mem::forget((machine, timers, kernel));
    } else {
        machine.finish();
        // Only now: programs were perhaps stopped while they held the lock of a base.
        oracle.count_noticed(&kernel);
    }
    Ok(History { cpus, digest, ..*oracle.history.borrow() })
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
        skew: if pick(2) == 0 { Skew::NONE } else { Skew { most: Ns(37_000), seed: pick(64) } },
        idle: if stops { IdleTick::Stops } else { IdleTick::Keeps },
        grace: GRACE,
        clocked: Clocked::FromSwitch,
        has_slice_timer: false,
    }
}

/// Installs a check that an idle CPU wakes when the first timer of its base is due. It applies only
/// after the last fault.
fn check_sleeps(kernel: &Rc<Kernel>, oracle: &Rc<Oracle>) {
    const WAKING_MAX: Ns = Ns::from_ms(1);
    let oracle = Rc::clone(oracle);
    kernel.check_sleeps(move |sleep: IdleSleep| {
        let is_safe = sleep.from > SAFE_UNTIL.after(LATE_MAX);
        if is_safe && sleep.to > sleep.earliest.after(WAKING_MAX).after(oracle.behind_max()) {
            oracle.fail(format!("slept through a timer: {sleep:?}"));
        }
    });
}
