//! The simulated workload: groups of workers with a quota of CPU time in each period, whose periods
//! begin together (*aligned*) or at different moments (*apart*).
//!
//! The machine is one core with eight threads (SMT8). Two groups have four workers each and a quota
//! of 200 ms in every 100 ms, so a group's workers run for 50 ms and then wait. Aligned, all eight
//! threads of the core are busy in these 50 ms and slow each other down; apart, four are busy at a
//! time. The groups use the library's bandwidth controller, in which one of the library's timers
//! refills each group. The simulated machine sets the speed of a thread with busy siblings.
//!
//! Which figures are calibrated, implied and predicted: `docs/book/src/machine.md`.
//!
//! The later version of the patch was measured on another machine, which has a file of its own.
//!
//! The report does not state how far apart the groups were. Its patch made the offsets multiples of
//! 10 ms, and its three runs took 131, 155 and 121 s. Offsets that fit are 30, 0 and 50 ms.

use crate::studies::cell::{Band, Cell, Claim};
use crate::studies::fit::fitted;
use crate::studies::study::Sides;
use std::cell::{Cell as Shared, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tickless_core::bandwidth::{Grant, Group, MemberId, Release, Settings as Bandwidth};
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Options, Settings};
use tickless_core::periodic;
use tickless_core::phase::{Phase, Phases};
use tickless_core::platform::Lock;
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::cpu;
use tickless_machine::engine::{self, Machine};
use tickless_machine::os::{Class, Clocked, Config, IdleTick, Kernel, Skew, TaskId};
use tickless_machine::platform::{self, SimLock};
use tickless_machine::ps::Ps;
use tickless_machine::spec::Spec;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GroupPlan {
    pub period: Ns,
    pub quota: Ns,
    pub phase: Phase,
    pub workers: u16,
}

impl GroupPlan {
    /// Returns the published group: four workers with 200 ms of CPU time in every 100 ms.
    pub const fn published(phase: Phase) -> GroupPlan {
        let (period, quota) = (Ns::from_ms(100), Ns::from_ms(200));
        GroupPlan { period, quota, phase, workers: 4 }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub seconds: f64,
    pub watts: f64,
    pub joules: f64,
    pub windows: Vec<Windows>,
    pub digest: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Windows {
    pub first_refill: Ns,
    pub ran: Vec<(Ns, Ns)>,
}

/// The fraction of the work that is simulated. The results are scaled up to the whole work.
const SHARE: f64 = 0.1;

/// The CPU time that a worker takes from its group's quota at once: 5 ms, the kernel's default.
const SLICE: Ns = Ns::from_ms(5);

pub const SIDES: Sides<Phase> =
    Sides { before: Phase::Aligned, after: Phase::Fixed(Duration::from_millis(50)) };

/// Simulates the published runs, then other offsets, loads, periods and numbers of groups.
pub fn cells(spec: &Spec) -> io::Result<Vec<Cell>> {
    let alone = run(spec, &[GroupPlan::published(Phase::Aligned)])?;
    let aligned = run(spec, &pair(Phase::Aligned))?;
    let mut cells = vec![
        Cell::calibrated("alone.seconds", SECONDS, 120.0, alone.seconds),
        Cell::calibrated("together.aligned.seconds", SECONDS, 155.0, aligned.seconds),
    ];
    for offset in [10, 20, 30, 40, 50] {
        let apart = run(spec, &pair(Phase::Fixed(Duration::from_millis(offset))))?;
        let cell = |what: &str, unit, value| {
            Cell::predicted(format!("together.{offset}ms.{what}"), unit, value)
        };
        let seconds = cell("seconds", SECONDS, apart.seconds);
        let published = |seconds: Cell, published: f64| {
            let change = 100.0 * (published / 155.0 - 1.0);
            let band = Band::around(change, 25.0);
            let claim = Claim::change(aligned.seconds, apart.seconds, band);
            seconds.published(published).claims(claim.published(change, change))
        };
        let seconds = match offset {
            30 => published(seconds, 131.0),
            50 => published(seconds, 121.0),
            _ => seconds,
        };
        cells.push(seconds.beside_formula(completion(120.0, 120.0 / 155.0, offset as f64)));
        cells.push(cell("joules", JOULES, apart.joules));
        cells.push(cell("watts", WATTS, apart.watts));
    }
    cells.push(Cell::predicted("together.aligned.watts", WATTS, aligned.watts));
    cells.push(Cell::predicted("together.aligned.joules", JOULES, aligned.joules));
    for percent in [10, 25, 50, 75, 100] {
        let gain = gain_at(spec, percent)?;
        cells.push(Cell::predicted(format!("gain.{percent}_percent"), "times", gain));
    }
    let [even, odd] = [97, 103].map(|ms| GroupPlan {
        period: Ns::from_ms(ms),
        quota: Ns::from_ms(2 * ms),
        ..GroupPlan::published(Phase::Aligned)
    });
    let differing = run(spec, &[even, odd])?;
    let id = "together.97_and_103ms.seconds";
    cells.push(Cell::predicted(id, SECONDS, differing.seconds));
    let policies =
        [("aligned", Phase::Aligned), ("spread", Phase::Spread), ("random", Phase::Random(1))];
    for (name, phase) in policies {
        let plan = GroupPlan { quota: Ns::from_ms(50), workers: 2, ..GroupPlan::published(phase) };
        let four = run(spec, &[plan; 4])?;
        let id = format!("four_groups.{name}.seconds");
        cells.push(Cell::predicted(id, SECONDS, four.seconds));
    }
    Ok(cells)
}

/// Returns what a formula gives for the time of two groups, to compare the simulation with. Their
/// bursts of 50 ms begin `offset` ms apart. `alone` is the time of one group alone. `rate` is a
/// thread's speed with all siblings busy, relative to its speed with half of them busy.
fn completion(alone: f64, rate: f64, offset: f64) -> f64 {
    let overlap = (1.0 - offset / 50.0).max(0.0);
    alone / (1.0 - overlap * (1.0 - rate))
}

/// Simulates the figures of a later version of the published patch, measured on a similar machine.
///
/// The machine is fitted to the published completion times; power and energy are predicted.
pub fn second_source(spec: &Spec, sides: Sides<Phase>) -> io::Result<Vec<Cell>> {
    let aligned = run(spec, &pair(sides.before))?;
    let apart = run(spec, &pair(sides.after))?;
    let ratio = apart.seconds / aligned.seconds;
    let power =
        Claim::change(aligned.watts, apart.watts, Band::between(10.0, 22.5)).published(15.0, 15.0);
    let energy = Claim::change(aligned.joules, apart.joules, Band::between(-27.0, -7.0 / 1.5))
        .published(-18.0, -7.0);
    Ok(vec![
        Cell::calibrated("later.apart.seconds", SECONDS, 33.05, apart.seconds),
        Cell::calibrated("later.apart_over_aligned", "times", 0.685, ratio),
        Cell::predicted("later.apart.watts", WATTS, apart.watts).claims(power),
        Cell::predicted("later.apart.joules", JOULES, apart.joules).claims(energy),
    ])
}

/// After a change to the machine, fits the two parameters again that are fitted to published
/// figures: a worker's work to the time of one group alone, then the speed of a thread beside seven
/// others to the time of two aligned groups.
pub fn refit(spec: &Spec) -> io::Result<Spec> {
    let spec = fitted(spec, "workload.work_s", 120.0, |spec| {
        Ok(run(spec, &[GroupPlan::published(Phase::Aligned)])?.seconds)
    })?;
    fitted(&spec, "smt.rate_8", 155.0, |spec| Ok(run(spec, &pair(Phase::Aligned))?.seconds))
}

/// Fits two parameters of the machine on which later versions of the patch were measured: a
/// worker's work to the completion time of groups half a period apart, then a thread's speed beside
/// seven others to the ratio of this time to that of aligned groups.
pub fn refit_second_source(spec: &Spec) -> io::Result<Spec> {
    let of = |spec: &Spec, phase| -> io::Result<f64> { Ok(run(spec, &pair(phase))?.seconds) };
    let spec = fitted(spec, "workload.work_s", 33.05, |spec| of(spec, SIDES.after))?;
    fitted(&spec, "smt.rate_8", 0.685, |spec| Ok(of(spec, SIDES.after)? / of(spec, SIDES.before)?))
}

const SECONDS: &str = "s";
const WATTS: &str = "W";
const JOULES: &str = "J";

/// Returns how many times faster two groups finish if their periods begin half a period apart
/// instead of together. Each worker is allowed to run for `percent` of the time.
fn gain_at(spec: &Spec, percent: u64) -> io::Result<f64> {
    let with = |phase| {
        let quota = Ns::from_ms(4 * percent);
        pair(phase).map(|plan| GroupPlan { quota, ..plan })
    };
    let aligned = run(spec, &with(Phase::Aligned))?;
    let apart = run(spec, &with(Phase::Fixed(Duration::from_millis(50))))?;
    Ok(aligned.seconds / apart.seconds)
}

pub fn pair(second: Phase) -> [GroupPlan; 2] {
    [GroupPlan::published(Phase::Aligned), GroupPlan::published(second)]
}

/// A simulated group of workers that share a quota of CPU time.
struct SimGroup {
    first_refill: Ns,
    ran: RefCell<Vec<(Ns, Ns)>>,
    quota: SimLock<Group>,
    tasks: RefCell<Vec<(MemberId, TaskId)>>,
    /// When the workers began and when the last of them ended.
    began: Shared<Ps>,
    done: Shared<Ps>,
    /// How many workers have not ended yet.
    left: Shared<u16>,
}

/// Simulates the groups' work to its end.
pub fn run(spec: &Spec, plans: &[GroupPlan]) -> io::Result<Outcome> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let config = Config {
        timers: Settings::default(),
        tick: Ns((1e9 / spec.value("workload.hz").max(1.0)) as u64),
        skew: Skew::NONE,
        idle: IdleTick::Stops,
        grace: Ns::NEVER,
        clocked: Clocked::FromSwitch,
        has_slice_timer: false,
    };
    let kernel = Kernel::boot(&mut machine, config)?;
    let work = Ps::from_ns_f64(spec.value("workload.work_s") * 1e9 * SHARE);
    let mut phases = Phases::new();
    let running = Rc::new(Shared::new(plans.len()));
    let mut groups = Vec::new();
    let mut next_cpu = 0;
    // The phase of a group depends on the groups before it. Workers are bound to CPUs in turn.
    for plan in plans {
        let slot = phases.take(plan.period, plan.phase).map_err(io::Error::other)?;
        let first = slot.first_after(Ns::ZERO);
        let group = new_group(*plan, first)?;
        for worker in 0..plan.workers {
            let cpu = CpuId(next_cpu % cpus);
            next_cpu += 1;
            let body = Worker {
                kernel: Rc::clone(&kernel),
                group: Rc::clone(&group),
                running: Rc::clone(&running),
                plan: *plan,
                first: (worker == 0).then_some(first),
            };
            kernel.spawn(&mut machine, Class::Fair, Some(cpu), move || body.run(work))?;
        }
        groups.push(group);
    }
    machine.run(Ns::from_secs(1_000));
    machine.finish();
    // Only a `SHARE` of the published work was simulated: scale times and energy up.
    let times = groups.iter().map(|group| (group.done.get() - group.began.get()).as_ns_f64() / 1e9);
    let end = groups.iter().map(|group| group.done.get()).max().unwrap_or(Ps::ZERO);
    let joules = machine.joules();
    let windows = |it: &Rc<SimGroup>| Windows { first_refill: it.first_refill, ran: it.ran.take() };
    Ok(Outcome {
        seconds: times.sum::<f64>() / plans.len() as f64 / SHARE,
        watts: joules / (end.as_ns_f64() / 1e9).max(1e-9),
        joules: joules / SHARE,
        windows: groups.iter().map(windows).collect(),
        digest: machine.digest(),
    })
}

fn new_group(plan: GroupPlan, first: Ns) -> io::Result<Rc<SimGroup>> {
    let bandwidth = Bandwidth {
        quota: plan.quota.0,
        period: plan.period,
        extra: 0,
        slice: SLICE.0,
        release: Release::TOGETHER,
    };
    let quota = Group::new(bandwidth, first).map_err(io::Error::other)?;
    Ok(Rc::new(SimGroup {
        first_refill: first,
        ran: RefCell::default(),
        quota: SimLock::new(quota),
        tasks: RefCell::default(),
        began: Shared::new(Ps::ZERO),
        done: Shared::new(Ps::ZERO),
        left: Shared::new(plan.workers),
    }))
}

struct Worker {
    kernel: Rc<Kernel>,
    group: Rc<SimGroup>,
    running: Rc<Shared<usize>>,
    plan: GroupPlan,
    /// Set in the one worker that arms the refill timer: when the first refill is due.
    first: Option<Ns>,
}

impl Worker {
    /// Does work while the group grants CPU time, and blocks while it has none left.
    fn run(self, work: Ps) {
        let _timer = self.first.map(|first| self.arm_refills(first));
        // Wait for the group's first refill. A worker that began earlier would use the quota with
        // which the group was created, and the measured time would be shorter.
        cpu::wait_until(Ps::from_ns(self.first_refill()));
        self.group.began.set(cpu::clock());
        let me = self.group.quota.lock().join();
        self.group.tasks.borrow_mut().push((me, self.kernel.current()));
        let mut left = work;
        while left > Ps::ZERO {
            let now = platform::now();
            let grant = self.group.quota.lock().ask(me, 1, now);
            match grant {
                Ok(Grant::Run(amount)) => {
                    let began = cpu::clock();
                    let slice = Ps::from_ns(Ns(amount).min(SLICE));
                    left = cpu::work_until(left, began + slice);
                    self.group.ran.borrow_mut().push((began.to_ns(), cpu::clock().to_ns()));
                    let used = (cpu::clock() - began).to_ns().0;
                    self.group.quota.lock().charge(me, used);
                }
                Ok(Grant::Wait) => self.kernel.block(),
                Err(_) => return,
            }
        }
        self.group.quota.lock().leave(me);
        self.finish();
    }

    fn first_refill(&self) -> Ns {
        self.group.quota.lock().next_refill()
    }

    fn arm_refills(&self, first: Ns) -> tickless_machine::os::Timer {
        let (kernel, group) = (Rc::clone(&self.kernel), Rc::clone(&self.group));
        let period = self.plan.period;
        let timer = self.kernel.timer(move |firing| {
            let mut quota = group.quota.lock();
            quota.refill(firing.now);
            let released: Vec<MemberId> =
                std::iter::from_fn(|| quota.pop_released(firing.now)).collect();
            drop(quota);
            for id in released {
                let task = group.tasks.borrow().iter().find(|task| task.0 == id).copied();
                if let Some((_, task)) = task {
                    kernel.wake(task);
                }
            }
            CallbackResult::Restart(periodic::forward(firing.window, firing.now, period).0)
        });
        let _ = timer.start(Window::at(first), platform::now(), Options::default());
        timer
    }

    /// Notes that this worker is done. The last worker of all groups stops the machine.
    fn finish(&self) {
        let left = self.group.left.get() - 1;
        self.group.left.set(left);
        if left == 0 {
            self.group.done.set(cpu::clock());
            self.running.set(self.running.get() - 1);
        }
        if self.running.get() == 0 {
            engine::stop();
        }
        // The worker that owns the refill timer must not drop it while other workers need it.
        if self.first.is_some() {
            while self.group.left.get() > 0 {
                self.kernel.block();
            }
        }
    }
}
