//! W13: the sleeps of executors of one thread, each driven by its own executor.

use super::{Choice, contender, short};
use crate::effort::Effort;
use crate::peers::executors::{AsyncIo, Executor, Ours, PRECISE, poll_once};
use crate::random::Random;
use crate::report::Table;
use crate::sample::{Figure, Stopwatch, interleave};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
enum Work {
    /// A sleep is made, polled once and dropped, while others are pending.
    Once,
    /// A random pending sleep is pushed out.
    PushOut,
    /// All sleeps are due at one instant: they fire, are polled and dropped.
    Cluster,
}

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Deadlines are instants 10 to 20 minutes away. CPU time of the thread; of a \
                 cluster, from before it is due until each of its sleeps has been polled and \
                 dropped.";
    let mut table = Table::new("W13", "sleeps of executors of one thread", about);
    let about = "Each sample of our precise sleep divided by theirs of the same turn. The goal is \
                 1.0 in every row.";
    let mut ratios = Table::new("W13", "local sleeps over those of the executors", about);
    let few = &effort.pending[..effort.pending.len().min(2)];
    let most = &few[few.len() - 1..];
    let columns = [
        (Work::Once, "once", few),
        (Work::PushOut, "push out", few),
        (Work::Cluster, "cluster", most),
    ];
    for (work, title, pending) in columns {
        for &pending in pending {
            let plan = &Plan::new(pending, effort.operations);
            let wanted = executors().into_iter().filter(|one| choice.wants(one.0));
            let contenders =
                wanted.map(|(name, sample)| contender(name, move || sample(work, plan))).collect();
            let title = format!("{title}, {}", short(pending));
            let (column, ratio) = (table.column(&title), ratios.column(&title));
            let samples = interleave(contenders, effort.repetitions);
            let ours = samples.iter().find(|(name, _)| *name == PRECISE);
            for (name, theirs) in &samples {
                table.put(name, column, "ns", Figure::of(theirs.clone()));
                if let Some((_, ours)) = ours.filter(|_| !name.starts_with("**")) {
                    ratios.put(name, ratio, "x", Figure::of_ratios(ours, theirs));
                }
            }
        }
    }
    vec![table, ratios]
}

type Sample = fn(Work, &Plan) -> f64;

fn executors() -> Vec<(&'static str, Sample)> {
    fn row<E: Executor>(name: &'static str) -> (&'static str, Sample) {
        (name, |work, plan| E::new().run(|timers| measure::<E>(timers, work, plan)))
    }
    vec![
        row::<Ours<false>>(PRECISE),
        row::<Ours<true>>("**local Sleep**, coarse"),
        row::<tokio::runtime::Runtime>("tokio `sleep`, current thread"),
        row::<AsyncIo>("async-io `Timer`"),
    ]
}

struct Plan {
    pending: Vec<Duration>,
    /// A pending sleep for each operation, and a duration.
    operations: Vec<(usize, Duration)>,
}

impl Plan {
    fn new(pending: usize, operations: usize) -> Plan {
        let mut random = Random::new();
        let operations = (0..operations)
            .map(|_| (random.below(pending as u64) as usize, random.seconds(1200, 2400)))
            .collect();
        Plan { pending: random.many(pending, 600, 1200), operations }
    }
}

async fn measure<E: Executor>(timers: E::Timers, work: Work, plan: &Plan) -> f64 {
    let begun = Instant::now();
    let together =
        begun + Duration::from_millis(50) + Duration::from_micros(2) * plan.pending.len() as u32;
    let deadline = |after| if let Work::Cluster = work { together } else { begun + after };
    let sleep = |after| Box::pin(E::sleep_until(&timers, deadline(after)));
    let mut sleeps: Vec<Pin<Box<E::Sleep>>> =
        plan.pending.iter().map(|&after| sleep(after)).collect();
    sleeps.iter_mut().for_each(|sleep| poll_once(sleep.as_mut()));
    let mut last = pin!(E::sleep_until(&timers, together + Duration::from_millis(20)));
    let watch = Stopwatch::start();
    match work {
        Work::Once => {
            for &(_, after) in &plan.operations {
                poll_once(pin!(E::sleep_until(&timers, begun + after)));
            }
        }
        Work::PushOut => {
            for &(nth, after) in &plan.operations {
                E::push_out(&timers, sleeps[nth].as_mut(), begun + after);
            }
        }
        Work::Cluster => {
            last.as_mut().await;
            for mut sleep in sleeps {
                assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
            }
            return watch.ns_per(plan.pending.len());
        }
    }
    watch.ns_per(plan.operations.len())
}
