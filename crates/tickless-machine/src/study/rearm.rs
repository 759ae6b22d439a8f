//! Seed 0: what it costs that removing a timer programs the event device.
//!
//! Two tasks on two cores hand a byte to and fro through pipes. Each waits for the other, so its
//! CPU goes idle twice per round trip of the pair, once each: going idle cancels the tick, which
//! is the CPU's first timer, and leaving idle arms it again. All of that is the kernel's own
//! code on the library's timers; the three policies differ in one setting.
//!
//! | cell | role |
//! |---|---|
//! | lazy, 5.324 us per round trip | calibrates what a pipe call does in itself |
//! | device writes per round trip, each policy | predicted: they come out of the library's code |
//! | eager, 6.9 us | predicted, within 15 % |
//! | share of time that the tasks were on their CPUs | predicted, shown |

use super::{Band, Cell, Figure};
use crate::engine::{self, Machine};
use crate::os::{Class, Config, IdleTick, Kernel, Pipe};
use crate::ps::Ps;
use crate::spec::Spec;
use std::cell::Cell as Shared;
use std::io;
use std::rc::Rc;
use tickless_core::bases::expiry::Verdict;
use tickless_core::bases::{Options, Settings};
use tickless_core::rearm::{DeviceCounts, Policy};
use tickless_core::time::{CpuId, Ns, Window};

/// Round trips that are measured, after a tenth as many that are not.
const ROUNDS: u32 = 20_000;

/// What else is armed on the two CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// Nothing.
    None,
    /// On each a timer that is far away.
    One,
}

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// Microseconds per round trip.
    pub us: f64,
    /// Writes of event devices per round trip.
    pub writes: f64,
    /// Events that found nothing to do, per second.
    pub spurious_per_s: f64,
    /// Share of the time that the two tasks were on their CPUs, of both CPUs' time over two.
    pub task_percent: f64,
    /// What the engine did.
    pub digest: u64,
}

/// The cells of the thread.
pub fn cells(spec: &Spec) -> io::Result<Vec<Cell>> {
    let run = |policy, others| run(spec, policy, others, ROUNDS);
    let lazy = run(Policy::Lazy, Others::None)?;
    let eager = run(Policy::Eager, Others::None)?;
    let aware = run(Policy::RestartAware, Others::None)?;
    let second = run(Policy::Eager, Others::One)?;
    let one = |value| Figure::of(vec![value]);
    let writes = |id: &str, outcome: Outcome| {
        Cell::predicted(format!("{id}.device_writes_per_round_trip"), WRITES, one(outcome.writes))
    };
    let share = |id: &str, outcome: Outcome, published| {
        let id = format!("{id}.task_percent");
        Cell::predicted(id, "% of real time", one(outcome.task_percent)).published(published)
    };
    let spurious = |id: &str, outcome: Outcome| {
        let id = format!("{id}.spurious_wakeups_per_s");
        Cell::predicted(id, "wakeups/s", one(outcome.spurious_per_s))
    };
    Ok(vec![
        Cell::calibrated("lazy.us_per_round_trip", US, 5.324, one(lazy.us)),
        Cell::predicted("eager.us_per_round_trip", US, one(eager.us))
            .published(7.202)
            .within(Band::around(6.9, 15.0)),
        Cell::predicted("restart_aware.us_per_round_trip", US, one(aware.us)),
        writes("lazy", lazy).within(Band::between(0.0, 0.1)),
        writes("eager", eager).within(Band::between(3.9, 4.1)),
        writes("restart_aware", aware),
        writes("eager.second_timer", second),
        share("lazy", lazy, 45.0),
        share("eager", eager, 45.6),
        spurious("lazy", lazy),
        spurious("eager", eager),
    ])
}

/// A short stretch of the eager policy, for a timeline.
pub fn stretch(spec: &Spec) -> io::Result<()> {
    run(spec, Policy::Eager, Others::None, 200).map(drop)
}

const US: &str = "us";
const WRITES: &str = "writes";

/// What the tasks of one run write down.
#[derive(Default)]
struct Notes {
    began: Shared<Ps>,
    ended: Shared<Ps>,
    before: Shared<DeviceCounts>,
    after: Shared<DeviceCounts>,
    ran_before: Shared<u64>,
    ran_after: Shared<u64>,
}

/// Runs the ping-pong once.
pub fn run(spec: &Spec, policy: Policy, others: Others, rounds: u32) -> io::Result<Outcome> {
    let mut machine = Machine::new(spec.costs());
    let config = Config {
        timers: Settings { policy, ..Settings::default() },
        tick: Ns((1e9 / spec.value("workload.hz").max(1.0)) as u64),
        skew: Ns::ZERO,
        idle: IdleTick::Stops,
        grace: Ns::NEVER,
    };
    let kernel = Kernel::boot(&mut machine, config)?;
    let work = spec.time("workload.pipe_ns");
    let [there, back] = [(); 2].map(|()| Rc::new(Pipe::new(&kernel, work)));
    let notes = Rc::new(Notes::default());
    let warm = rounds / 10;
    let tasks = Rc::new(Shared::new(None));
    let far = [CpuId(0), CpuId(1)].map(|_| Rc::new(kernel.timer(|_| Verdict::Done)));
    let arm = move |kernel: &Kernel, timer: &crate::os::Timer| {
        if others == Others::One {
            let at = Ns::from_secs(1_000);
            let now = engine::clock().to_ns();
            let _ = timer.start(Window::new(at, at), now, Options::default());
        }
        let _ = kernel;
    };
    let first = {
        let (kernel, notes, tasks) = (Rc::clone(&kernel), Rc::clone(&notes), Rc::clone(&tasks));
        let (there, back, far) = (Rc::clone(&there), Rc::clone(&back), Rc::clone(&far[0]));
        move || {
            arm(&kernel, &far);
            for round in 0..warm + rounds {
                if round == warm {
                    notes.before.set(device_counts(&kernel));
                    notes.ran_before.set(ran(&kernel, tasks.get()));
                    notes.began.set(engine::clock());
                }
                there.write();
                back.read();
            }
            notes.ended.set(engine::clock());
            notes.after.set(device_counts(&kernel));
            notes.ran_after.set(ran(&kernel, tasks.get()));
            engine::stop();
        }
    };
    let one = kernel.spawn(&mut machine, Class::Fair, Some(CpuId(0)), first)?;
    let (kernel2, far) = (Rc::clone(&kernel), Rc::clone(&far[1]));
    let other = kernel.spawn(&mut machine, Class::Fair, Some(CpuId(1)), move || {
        arm(&kernel2, &far);
        for _ in 0..warm + rounds {
            there.read();
            back.write();
        }
    })?;
    tasks.set(Some([one, other]));
    machine.run(Ns::from_secs(60));
    machine.finish();
    let took = notes.ended.get() - notes.began.get();
    let counts = notes.after.get().since(notes.before.get());
    let each = f64::from(rounds);
    let on_cpu = (notes.ran_after.get() - notes.ran_before.get()) as f64;
    Ok(Outcome {
        us: took.as_ns_f64() / 1e3 / each,
        writes: counts.writes as f64 / each,
        spurious_per_s: counts.spurious as f64 / (took.as_ns_f64() / 1e9),
        task_percent: 100.0 * on_cpu / took.0 as f64,
        digest: machine.digest(),
    })
}

fn device_counts(kernel: &Kernel) -> DeviceCounts {
    let views = [CpuId(0), CpuId(1)].map(|cpu| kernel.bases().view(cpu));
    let counts = views.into_iter().flatten().map(|view| view.device);
    counts.fold(DeviceCounts::default(), DeviceCounts::plus)
}

fn ran(kernel: &Kernel, tasks: Option<[crate::os::TaskId; 2]>) -> u64 {
    tasks.map_or(0, |tasks| tasks.iter().map(|task| kernel.usage(*task).ran.0).sum())
}
