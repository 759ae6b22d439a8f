//! The doctor's checks of what makes threads late besides timers: the hypervisor, the processor's
//! frequency and idle states, the limit of real-time threads, and interrupts on one CPU.

use super::checks::{Check, Judged, Judgement, Need, Verdict};
use super::facts::{Facts, Governor, IdleState, Interrupt, RtLimit};
use crate::text::figure;

pub const CHECKS: [Check; 5] = [STEAL, GOVERNOR, IDLE_STATES, RT_THROTTLING, IRQ_AFFINITY];

const STEAL: Check = Check { name: "steal", needs: &[Need::Counted], judge: steal };

const GOVERNOR: Check = Check { name: "cpu-governor", needs: &[Need::Governors], judge: governor };

const IDLE_STATES: Check =
    Check { name: "idle-states", needs: &[Need::IdleStates], judge: idle_states };

const RT_THROTTLING: Check =
    Check { name: "rt-throttling", needs: &[Need::Log, Need::RtLimit], judge: rt_throttling };

const IRQ_AFFINITY: Check =
    Check { name: "irq-affinity", needs: &[Need::Interrupts], judge: irq_affinity };

/// Limits for the percentage of stolen time. Below the first, a thread waits for the host about as
/// seldom as for the tick; from the second on, one piece of work in ten does.
const STEAL_WARN: f64 = 2.0;
const STEAL_BAD: f64 = 10.0;

fn steal(facts: &Facts) -> Judged<'_> {
    let counted = facts.counted.as_ref()?;
    let [stolen, all] =
        counted.cpus.iter().fold([0, 0], |[stolen, all], cpu| [stolen + cpu.steal, all + cpu.time]);
    let percent = 100.0 * stolen as f64 / all.max(1) as f64;
    let how = format!(
        "steal in /proc/stat over {:.1} s, of all CPUs; some hypervisors do not tell, then it is 0",
        counted.seconds
    );
    Judgement::figure(Verdict::from_limits(percent, STEAL_WARN, STEAL_BAD), percent, how)
}

/// Drivers whose governor `powersave` follows the load, unlike that of all others, which keeps the
/// least frequency.
const SCALING_DRIVERS: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

/// Judges how many CPUs stay at the least frequency (bad), or at one that a program has chosen.
fn governor(facts: &Facts) -> Judged<'_> {
    let governors = facts.governors.as_ref()?;
    let is_slow = |it: &&Governor| {
        it.governor == "powersave" && !SCALING_DRIVERS.contains(&it.driver.as_str())
    };
    let count = |is: &dyn Fn(&&Governor) -> bool| -> usize {
        governors.iter().filter(is).map(|it| it.cpus).sum()
    };
    let (slow, fixed) = (count(&is_slow), count(&|it| it.governor == "userspace"));
    let verdict = match (slow, fixed) {
        (0, 0) => Verdict::Ok,
        (0, _) => Verdict::Warn,
        _ => Verdict::Bad,
    };
    let list = governors.iter().map(|Governor { driver, governor, cpus }| {
        format!("{governor} on {cpus} CPUs (driver {driver})")
    });
    Judgement::figure(verdict, (slow + fixed) as f64, list.collect::<Vec<_>>().join(", "))
}

/// Limits for the time that leaving an idle state takes, in microseconds. Laptops have states of up
/// to 900 us; a wakeup from a longer one is later by a whole tick.
const EXIT_WARN_US: f64 = 1_000.0;
const EXIT_BAD_US: f64 = 10_000.0;

/// Judges the state that takes longest to leave, of those that CPUs entered while it looked.
fn idle_states(facts: &Facts) -> Judged<'_> {
    let states = facts.idle_states.as_ref()?;
    let entered: Vec<&IdleState> = states.iter().filter(|state| state.entered > 0).collect();
    let slowest = entered.iter().map(|state| state.exit_us).max().unwrap_or(0) as f64;
    let list = entered.iter().map(|IdleState { name, exit_us, entered }| {
        format!("{name} ({exit_us} us to leave) {entered} times")
    });
    let list: Vec<String> = list.collect();
    let how = match list.is_empty() {
        true => "no CPU entered an idle state that the kernel counts".to_string(),
        false => format!("CPUs entered {}", list.join(", ")),
    };
    Judgement::figure(Verdict::from_limits(slowest, EXIT_WARN_US, EXIT_BAD_US), slowest, how)
}

/// With less of each period than this, in percent, real-time threads are stopped in normal use.
const RT_SHARE_MIN: f64 = 50.0;

/// Judges whether the kernel has stopped real-time threads, which it logs once, at the first time.
fn rt_throttling(facts: &Facts) -> Judged<'_> {
    let RtLimit { runtime_us, period_us } = *facts.rt_limit.as_ref()?;
    let share = 100.0 * runtime_us as f64 / period_us.max(1) as f64;
    let limit = match runtime_us {
        ..0 => "no limit is set: one that spins keeps its CPU".to_string(),
        _ => format!("they may have {} % of each {period_us} us", figure(share)),
    };
    if (0.0..RT_SHARE_MIN).contains(&share) {
        return Judgement::figure(Verdict::Bad, 0.0, limit);
    }
    let log = facts.log.as_ref()?;
    let messages = log.iter().filter(|line| line.contains("RT throttling activated")).count();
    let verdict = if messages > 0 { Verdict::Warn } else { Verdict::Ok };
    let how = format!(
        "{messages} messages \"RT throttling activated\" in the kernel's log, which has it once \
         since the start; {limit}"
    );
    Judgement::figure(verdict, messages as f64, how)
}

/// From this share on, in percent, one CPU handles the interrupts alone.
const ALONE: f64 = 75.0;
/// Limits for the interrupts of that CPU, a second. At 2 us each they take 2 % and 20 % of it.
const INTERRUPTS_WARN: f64 = 10_000.0;
const INTERRUPTS_BAD: f64 = 100_000.0;

fn irq_affinity(facts: &Facts) -> Judged<'_> {
    let (interrupts, seconds) = facts.interrupts.as_ref()?;
    let cpus = interrupts.iter().map(|it| it.counts.len()).max().unwrap_or(0);
    if cpus < 2 {
        return Err("there is one CPU, which handles all interrupts".into());
    }
    let of_cpu = |cpu: usize| interrupts.iter().map(|it| it.counts.get(cpu).unwrap_or(&0)).sum();
    let sums: Vec<u64> = (0..cpus).map(of_cpu).collect();
    let all: u64 = sums.iter().sum();
    let (cpu, most) = sums.iter().enumerate().max_by_key(|(_, sum)| **sum).unwrap_or((0, &0));
    let share = 100.0 * *most as f64 / all.max(1) as f64;
    let rate = *most as f64 / seconds.max(1e-3);
    let verdict = match share >= ALONE {
        true => Verdict::from_limits(rate, INTERRUPTS_WARN, INTERRUPTS_BAD),
        false => Verdict::Ok,
    };
    let first = interrupts.iter().max_by_key(|it| it.counts.get(cpu).copied());
    let first = first.filter(|_| *most > 0).map_or_else(String::new, |it| {
        let Interrupt { number, name, allowed, .. } = it;
        format!("; most of them {name} (interrupt {number}, allowed on CPUs {allowed})")
    });
    let how = format!(
        "{all} device interrupts in {seconds:.1} s (/proc/interrupts), of which {} a second on \
         column {cpu} of the CPUs{first}",
        figure(rate)
    );
    Judgement::figure(verdict, share, how)
}
