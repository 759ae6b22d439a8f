//! Seed 4: bandwidth groups whose periods begin together, or apart.
//!
//! One SMT8 core. Two groups of four workers, each with a quota of 200 ms in every 100 ms, so that
//! a group's workers run for 50 ms and then wait. Aligned, all eight threads of the core are busy
//! in those 50 ms and slow each other down; apart, four are busy at a time. Groups are the
//! library's bandwidth controller, refilled by one of its timers each; what a thread does beside
//! its siblings is the machine's.
//!
//! | cell | role |
//! |---|---|
//! | alone, 120 s | calibrates the work of a worker |
//! | together, aligned, 155 s | calibrates a thread's rate beside seven others |
//! | 30 ms and 50 ms apart, 131 and 121 s | predicted, within 3 % |
//! | the curve, utilisations, periods of 97 and 103 ms, energy | predicted |
//!
//! The thread names no offsets: its patch made them multiples of 10 ms, and its three runs gave
//! 131, 155 and 121 s. 30, 0 and 50 ms are the offsets that fit.

use super::{Band, Cell, Figure};
use crate::cpu;
use crate::engine::{self, Machine};
use crate::os::{Class, Config, IdleTick, Kernel, TaskId};
use crate::platform::{self, SimLock};
use crate::ps::Ps;
use crate::spec::Spec;
use std::cell::{Cell as Shared, RefCell};
use std::io;
use std::rc::Rc;
use tickless_core::bandwidth::{Grant, Group, MemberId, Release, Settings as Bandwidth};
use tickless_core::bases::expiry::Verdict;
use tickless_core::bases::{Options, Settings};
use tickless_core::periodic;
use tickless_core::phase::{Phase, Phases};
use tickless_core::platform::Lock;
use tickless_core::time::{CpuId, Ns, Window};

/// One group of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GroupPlan {
    /// How often its quota is refilled.
    pub period: Ns,
    /// CPU time per period.
    pub quota: Ns,
    /// Where its periods begin.
    pub phase: Phase,
    /// Its workers.
    pub workers: u16,
}

impl GroupPlan {
    /// The thread's: four workers, 200 ms in 100 ms.
    pub const fn published(phase: Phase) -> GroupPlan {
        let (period, quota) = (Ns::from_ms(100), Ns::from_ms(200));
        GroupPlan { period, quota, phase, workers: 4 }
    }
}

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// How long the groups took, on average, in seconds.
    pub seconds: f64,
    /// What the core used meanwhile, in joules.
    pub joules: f64,
    /// Context switches per second.
    pub switches_per_s: f64,
    /// What the engine did.
    pub digest: u64,
}

/// When a group ran.
#[derive(Clone, PartialEq, Debug)]
pub struct Windows {
    /// When it was first refilled.
    pub first_refill: Ns,
    /// From when to when its workers ran, each by itself, in no order.
    pub ran: Vec<(Ns, Ns)>,
}

/// Both groups aligned, for a timeline.
pub fn stretch(spec: &Spec) -> io::Result<()> {
    run(spec, &pair(Phase::Aligned)).map(drop)
}

/// This share of the work is run, and times are scaled up.
const SHARE: f64 = 0.1;

/// What a member takes at a time: 5 ms, the kernel's default.
const SLICE: Ns = Ns::from_ms(5);

/// The cells of the thread, and what it did not measure.
pub fn cells(spec: &Spec) -> io::Result<Vec<Cell>> {
    let one = |value| Figure::of(vec![value]);
    let alone = run(spec, &[GroupPlan::published(Phase::Aligned)])?;
    let aligned = run(spec, &pair(Phase::Aligned))?;
    let mut cells = vec![
        Cell::calibrated("alone.seconds", SECONDS, 120.0, one(alone.seconds)),
        Cell::calibrated("together.aligned.seconds", SECONDS, 155.0, one(aligned.seconds)),
    ];
    for offset in [10, 20, 30, 40, 50] {
        let apart = run(spec, &pair(Phase::Fixed(Ns::from_ms(offset))))?;
        let cell = |what: &str, unit, value| {
            Cell::predicted(format!("together.{offset}ms.{what}"), unit, one(value))
        };
        let seconds = cell("seconds", SECONDS, apart.seconds);
        cells.push(match offset {
            30 => seconds.published(131.0).within(Band::around(131.0, 3.0)),
            50 => seconds.published(121.0).within(Band::around(121.0, 3.0)),
            _ => seconds,
        });
        cells.push(cell("joules", JOULES, apart.joules));
    }
    cells.push(Cell::predicted("together.aligned.joules", JOULES, one(aligned.joules)));
    for percent in [10, 25, 50, 75, 100] {
        let gain = gain_at(spec, percent)?;
        let cell = Cell::predicted(format!("gain.{percent}_percent"), "times", one(gain));
        cells.push(if percent == 100 { cell.within(Band::around(1.0, 3.0)) } else { cell });
    }
    let [even, odd] = [97, 103].map(|ms| GroupPlan {
        period: Ns::from_ms(ms),
        quota: Ns::from_ms(2 * ms),
        ..GroupPlan::published(Phase::Aligned)
    });
    let differing = run(spec, &[even, odd])?;
    let id = "together.97_and_103ms.seconds";
    cells.push(Cell::predicted(id, SECONDS, one(differing.seconds)));
    let policies =
        [("aligned", Phase::Aligned), ("spread", Phase::Spread), ("random", Phase::Random(1))];
    for (name, phase) in policies {
        let plan = GroupPlan { quota: Ns::from_ms(50), workers: 2, ..GroupPlan::published(phase) };
        let four = run(spec, &[plan; 4])?;
        let id = format!("four_groups.{name}.seconds");
        cells.push(Cell::predicted(id, SECONDS, one(four.seconds)));
    }
    Ok(cells)
}

const SECONDS: &str = "s";
const JOULES: &str = "J";

/// How much faster two groups are half a period apart, when each worker may run for so many
/// percent of the time.
fn gain_at(spec: &Spec, percent: u64) -> io::Result<f64> {
    let with = |phase| {
        let quota = Ns::from_ms(4 * percent);
        pair(phase).map(|plan| GroupPlan { quota, ..plan })
    };
    let aligned = run(spec, &with(Phase::Aligned))?;
    let apart = run(spec, &with(Phase::Fixed(Ns::from_ms(50))))?;
    Ok(aligned.seconds / apart.seconds)
}

/// Two of the thread's groups, the first one aligned.
pub fn pair(second: Phase) -> [GroupPlan; 2] {
    [GroupPlan::published(Phase::Aligned), GroupPlan::published(second)]
}

/// A group with the tasks that are its members.
struct Member {
    first_refill: Ns,
    ran: RefCell<Vec<(Ns, Ns)>>,
    group: SimLock<Group>,
    tasks: RefCell<Vec<(MemberId, TaskId)>>,
    began: Shared<Ps>,
    done: Shared<Ps>,
    left: Shared<u16>,
}

/// Runs some groups until all their workers are done.
pub fn run(spec: &Spec, plans: &[GroupPlan]) -> io::Result<Outcome> {
    Ok(run_watched(spec, plans)?.0)
}

/// The same; says when each group ran.
pub fn windows(spec: &Spec, plans: &[GroupPlan]) -> io::Result<Vec<Windows>> {
    Ok(run_watched(spec, plans)?.1)
}

fn run_watched(spec: &Spec, plans: &[GroupPlan]) -> io::Result<(Outcome, Vec<Windows>)> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let config = Config {
        timers: Settings::default(),
        tick: Ns((1e9 / spec.value("workload.hz").max(1.0)) as u64),
        skew: Ns::ZERO,
        idle: IdleTick::Stops,
        grace: Ns::NEVER,
    };
    let kernel = Kernel::boot(&mut machine, config)?;
    let work = Ps::from_ns_f64(spec.value("workload.work_s") * 1e9 * SHARE);
    let mut phases = Phases::new();
    let running = Rc::new(Shared::new(plans.len()));
    let mut groups = Vec::new();
    let mut next_cpu = 0;
    for plan in plans {
        let seat = phases.take(plan.period, plan.phase).map_err(io::Error::other)?;
        let first = seat.first_after(Ns::ZERO);
        let member = new_member(*plan, first)?;
        for worker in 0..plan.workers {
            let cpu = CpuId(next_cpu % cpus);
            next_cpu += 1;
            let body = Worker {
                kernel: Rc::clone(&kernel),
                member: Rc::clone(&member),
                running: Rc::clone(&running),
                plan: *plan,
                first: (worker == 0).then_some(first),
            };
            kernel.spawn(&mut machine, Class::Fair, Some(cpu), move || body.run(work))?;
        }
        groups.push(member);
    }
    machine.run(Ns::from_secs(1_000));
    machine.finish();
    let times = groups.iter().map(|group| {
        let took = group.done.get() - group.began.get();
        took.as_ns_f64() / 1e9
    });
    let end = groups.iter().map(|group| group.done.get()).max().unwrap_or(Ps::ZERO);
    let seconds = times.sum::<f64>() / plans.len() as f64 / SHARE;
    let usages = (0..cpus).filter_map(|cpu| machine.usage(CpuId(cpu)));
    let watts = spec.value("cpu.watts");
    let joules: f64 = usages
        .map(|usage| {
            let busy = usage.clock.since(usage.halted).as_ns_f64() / 1e9;
            watts * busy + usage.idle_joules
        })
        .sum();
    let switches = kernel.switches() as f64 / (end.as_ns_f64() / 1e9).max(1e-9);
    let digest = machine.digest();
    let windows = groups
        .iter()
        .map(|group| Windows { first_refill: group.first_refill, ran: group.ran.take() });
    let windows = windows.collect();
    Ok((Outcome { seconds, joules: joules / SHARE, switches_per_s: switches, digest }, windows))
}

fn new_member(plan: GroupPlan, first: Ns) -> io::Result<Rc<Member>> {
    let bandwidth = Bandwidth {
        quota: plan.quota.0,
        period: plan.period,
        burst: 0,
        slice: SLICE.0,
        release: Release::TOGETHER,
    };
    let group = Group::new(bandwidth, first).map_err(io::Error::other)?;
    Ok(Rc::new(Member {
        first_refill: first,
        ran: RefCell::default(),
        group: SimLock::new(group),
        tasks: RefCell::default(),
        began: Shared::new(Ps::ZERO),
        done: Shared::new(Ps::ZERO),
        left: Shared::new(plan.workers),
    }))
}

struct Worker {
    kernel: Rc<Kernel>,
    member: Rc<Member>,
    running: Rc<Shared<usize>>,
    plan: GroupPlan,
    /// When the group's first refill is due, for the worker that arms its timer.
    first: Option<Ns>,
}

impl Worker {
    fn run(self, work: Ps) {
        let _timer = self.first.map(|first| self.arm_refills(first));
        // A group begins with its first refill: before it, nothing could run but the quota that
        // it was made with.
        cpu::wait_until(Ps::from_ns(self.first_refill()));
        self.member.began.set(engine::clock());
        let me = self.member.group.lock().join();
        self.member.tasks.borrow_mut().push((me, self.kernel.current()));
        let mut left = work;
        while left > Ps::ZERO {
            let now = platform::now();
            let grant = self.member.group.lock().ask(me, 1, now);
            match grant {
                Ok(Grant::Run(amount)) => {
                    let began = engine::clock();
                    let slice = Ps::from_ns(Ns(amount).min(SLICE));
                    left = cpu::work_until(left, began + slice);
                    self.member.ran.borrow_mut().push((began.to_ns(), engine::clock().to_ns()));
                    let used = (engine::clock() - began).to_ns().0;
                    self.member.group.lock().charge(me, used);
                }
                Ok(Grant::Wait) => self.kernel.block(),
                Err(_) => return,
            }
        }
        self.member.group.lock().leave(me);
        self.finish();
    }

    fn first_refill(&self) -> Ns {
        self.member.group.lock().next_refill()
    }

    fn arm_refills(&self, first: Ns) -> crate::os::Timer {
        let (kernel, member) = (Rc::clone(&self.kernel), Rc::clone(&self.member));
        let period = self.plan.period;
        let timer = self.kernel.timer(move |firing| {
            let mut group = member.group.lock();
            group.refill(firing.now);
            let released: Vec<MemberId> =
                std::iter::from_fn(|| group.pop_released(firing.now)).collect();
            drop(group);
            for id in released {
                let task = member.tasks.borrow().iter().find(|task| task.0 == id).copied();
                if let Some((_, task)) = task {
                    kernel.wake(task);
                }
            }
            Verdict::Restart(periodic::forward(firing.window, firing.now, period).0)
        });
        let _ = timer.start(Window::new(first, first), platform::now(), Options::default());
        timer
    }

    fn finish(&self) {
        let left = self.member.left.get() - 1;
        self.member.left.set(left);
        if left == 0 {
            self.member.done.set(engine::clock());
            self.running.set(self.running.get() - 1);
        }
        if self.running.get() == 0 {
            engine::stop();
        }
        // The worker that owns the refill timer must not drop it while others need it.
        if self.first.is_some() {
            while self.member.left.get() > 0 {
                self.kernel.block();
            }
        }
    }
}
