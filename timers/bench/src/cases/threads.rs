//! W4: two threads, each arms and cancels its own timers. W4x: one cancels what the other armed.
//!
//! Each thread stays on a CPU of its own. Wall time over all pairs of both threads: perfect scaling
//! halves W1. In W4x timers travel through a ring of one producer and one consumer, and back.

use super::{Choice, contender};
use crate::affinity;
use crate::effort::Effort;
use crate::peers::executors::poll_once;
use crate::peers::foreign::{self, Kind};
use crate::peers::heaps::{LazyHeap, Tree};
use crate::peers::queues::Locked;
use crate::peers::{Shared, Table as _, local, timeout, tokio_sleep};
use crate::random::Random;
use crate::report::Table;
use crate::sample::{Contender, of_tokio, wall_ns};
use rtrb::RingBuffer;
use std::pin::pin;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

const RING: usize = 1024;

pub fn run_own(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Each thread on a CPU of its own, if there are enough; wall time over all pairs.";
    let table = Table::new("W4", "two threads arm + cancel their own timers", about);
    run(table, effort, choice, foreign::OWN, |after| {
        vec![
            contender("**LocalTimers**, one for each thread", || local_each(after)),
            own::<timeout::Anywhere>(timeout::FROM_NOW_NAME, after),
            on_workers(of_tokio!("tokio `Sleep`, 2 workers"), 2, after),
            on_workers(of_tokio!("tokio `Sleep`, 4 workers"), 4, after),
            own::<Locked<LazyHeap>>("std BinaryHeap in a mutex", after),
            own::<Locked<Tree>>("std BTreeMap in a mutex", after),
        ]
    })
}

pub fn run_crossed(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Each thread on a CPU of its own; wall time per pair, hand-over included.";
    let table = Table::new("W4x", "one thread cancels what the other armed", about);
    run(table, effort, choice, foreign::CROSSED, |after| {
        vec![
            contender("(the hand-over alone)", || crossed(&Nothing, after)),
            crossing::<timeout::Anywhere>(timeout::FROM_NOW_NAME, after),
            crossing::<timeout::Anywhere<true>>("**Timeout**, `cancel_sync` waits", after),
            crossing::<tokio_sleep::TwoWorkers>("tokio `Sleep`, 2 workers", after),
            crossing::<Locked<LazyHeap>>("std BinaryHeap in a mutex", after),
            crossing::<Locked<Tree>>("std BTreeMap in a mutex", after),
        ]
    })
}

fn run(
    mut table: Table,
    effort: &Effort,
    choice: &Choice,
    kind: Kind,
    contenders: impl for<'a> Fn(&'a [Duration]) -> Vec<Contender<'a>>,
) -> Vec<Table> {
    if affinity::remember() < 2 {
        table.skip("this program may use one CPU only");
        return vec![table];
    }
    let after = Random::new().many(effort.operations, 600, 1200);
    let mut contenders = contenders(&after);
    // The threads of peers in other languages choose their own CPUs.
    contenders.extend(choice.foreign(kind).map(|(peer, program)| {
        let name = if kind == foreign::CROSSED { peer.crossed_name } else { peer.name };
        let mut ask = foreign::lazily(program, kind, 0, effort.operations);
        contender(name, move || ask().ns)
    }));
    contenders.retain(|(name, _)| choice.wants(name));
    affinity::unpin();
    table.measure("ns per pair", contenders, effort.repetitions);
    affinity::pin(0);
    vec![table]
}

fn own<'a, S: Shared>(name: &'static str, after: &'a [Duration]) -> Contender<'a> {
    let timers = S::new();
    contender(name, move || {
        let work = |lap: &Lap| {
            timers.around(|| {
                let mut timer = timers.timer();
                lap.time(|| {
                    for &after in after {
                        timers.arm(&mut timer, after);
                        timers.cancel(&mut timer);
                    }
                })
            })
        };
        at_once(&[&work, &work]) / (2 * after.len()) as f64
    })
}

/// tokio's sleeps are made, polled once and dropped by tasks.
fn on_workers<'a>(name: &'static str, workers: usize, after: &'a [Duration]) -> Contender<'a> {
    let now = tokio::time::Instant::now();
    let sleep = move |after| poll_once(pin!(tokio::time::sleep_until(now + after)));
    let runtime = move || tokio_sleep::multi_thread(workers);
    contender(name, move || tokio_sleep::on_workers(workers, &mut runtime(), after, sleep))
}

fn local_each(after: &[Duration]) -> f64 {
    let work = |lap: &Lap| {
        let mut table = local::Local::<{ local::PLAIN }>::default();
        let lap = lap.time(|| after.iter().for_each(|&after| table.pair(after)));
        assert_eq!(table.pending(), 0);
        lap
    };
    at_once(&[&work, &work]) / (2 * after.len()) as f64
}

pub(super) struct Lap(Barrier);

impl Lap {
    pub(super) fn time(&self, work: impl FnOnce()) -> (Instant, Instant) {
        self.0.wait();
        let began = Instant::now();
        work();
        (began, Instant::now())
    }
}

pub(super) type Work<'a> = &'a (dyn Fn(&Lap) -> (Instant, Instant) + Sync);

/// Runs each piece of work on a thread and CPU of its own. Returns the wall time of all, in ns.
pub(super) fn at_once(work: &[Work<'_>]) -> f64 {
    let lap = &Lap(Barrier::new(work.len()));
    let laps = std::thread::scope(|scope| {
        let threads = work.iter().enumerate().map(|(nth, work)| {
            scope.spawn(move || {
                affinity::pin(nth);
                work(lap)
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("its assertions hold")).collect()
    });
    wall_ns(laps)
}

fn crossing<'a, S: Shared>(name: &'static str, after: &'a [Duration]) -> Contender<'a> {
    let timers = S::new();
    contender(name, move || crossed(&timers, after))
}

fn crossed<S: Shared>(timers: &S, after: &[Duration]) -> f64 {
    let (armed_in, armed_out) = RingBuffer::new(RING);
    let (mut spare_in, spare_out) = RingBuffer::new(RING);
    for _ in 0..RING {
        spare_in.push(timers.timer()).unwrap_or_else(|_| unreachable!("the ring has room"));
    }
    let (spares, armed) = (Mutex::new((spare_out, armed_in)), Mutex::new((armed_out, spare_in)));
    let arm = |lap: &Lap| {
        let (spares, armed) = &mut *spares.lock().expect("it has one user");
        timers.around(|| {
            lap.time(|| {
                for &after in after {
                    let mut timer = wait_for(|| spares.pop().ok());
                    timers.arm(&mut timer, after);
                    // The ring has room for all timers.
                    let _ = armed.push(timer);
                }
            })
        })
    };
    let cancel = |lap: &Lap| {
        let (armed, spares) = &mut *armed.lock().expect("it has one user");
        timers.around(|| {
            lap.time(|| {
                for _ in after {
                    let mut timer = wait_for(|| armed.pop().ok());
                    timers.cancel(&mut timer);
                    let _ = spares.push(timer);
                }
            })
        })
    };
    at_once(&[&arm, &cancel]) / after.len() as f64
}

fn wait_for<T>(mut next: impl FnMut() -> Option<T>) -> T {
    let mut rounds = 0;
    loop {
        if let Some(next) = next() {
            return next;
        }
        rounds += 1;
        // On a shared machine the other thread may not be running.
        if rounds % 1000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}

/// No timers: the cost of handing a word over and back.
struct Nothing;

impl Shared for Nothing {
    type Timer = Box<u64>;

    fn new() -> Nothing {
        Nothing
    }

    fn timer(&self) -> Box<u64> {
        Box::new(0)
    }

    fn arm(&self, timer: &mut Box<u64>, after: Duration) {
        **timer = u64::from(after.subsec_nanos());
    }

    fn cancel(&self, timer: &mut Box<u64>) {
        **timer = 0;
    }
}
