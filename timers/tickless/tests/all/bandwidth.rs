//! Rate limits and throttled threads on a set of timers.

use crate::support::woken::calls;
use crate::support::{Gate, Log, MS, Rng, seed, thread_time, wait_until};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tickless::bandwidth::{AcquireError, BandwidthError, Counts, Limiter};
use tickless::periodic::Phase;
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

/// A future with a waker that logs.
struct Task {
    future: Pin<Box<dyn Future<Output = Result<(), AcquireError>>>>,
    waker: Waker,
}

impl Task {
    fn new(limiter: &Limiter, permits: u64, number: usize, log: &Log<usize>) -> Task {
        let log = log.clone();
        Task { future: Box::pin(limiter.acquire(permits)), waker: calls(move || log.push(number)) }
    }

    fn poll(&mut self) -> Poll<Result<(), AcquireError>> {
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

fn assert_conserved(counts: Counts, held: u64) {
    assert_eq!(counts.refilled, counts.used + counts.expired + u128::from(held), "{counts:?}");
}

/// Goal: an unused group causes no wakeups (H2: no idle wakeups). When it is used again, it has the
/// permits of the elapsed periods and keeps its phase.
#[test]
fn an_idle_group_has_no_timer_and_keeps_its_phase() {
    let time = VirtualTime::new();
    let limiter =
        time.timers().limiter(10, MS * 100).extra(5).slack(Duration::ZERO).start().unwrap();
    let place = limiter.phase_offset().unwrap();
    for _ in 0..3 {
        limiter.try_acquire(10).unwrap();
        // Two refills, and one that finds nothing to refill.
        time.advance(MS * 400);
        let fired = time.timers().stats().total().fired;
        assert_eq!(time.next_event(), None);
        time.advance(MS * 12_345_678);
        assert_eq!(limiter.available(), 15);
        assert_eq!(time.next_event(), None, "a look arms nothing");
        assert_eq!(time.timers().stats().total().fired, fired);
        limiter.try_acquire(1).unwrap();
        assert_eq!(
            time.next_event().map(|at| u128::from(at.as_nanos()) % 100_000_000),
            Some(place.as_nanos())
        );
    }
}

#[test]
fn futures_are_served_in_order_and_in_batches() {
    let time = VirtualTime::new();
    let limiter = time.timers().limiter(10, MS * 100).release(2, 3 * MS).slack(Duration::ZERO);
    let limiter = limiter.phase(Phase::Aligned).start().unwrap();
    let log = Log::new();
    limiter.try_acquire(10).unwrap();
    let sizes = [4, 1, 1, 1, 9, 1];
    let task = |(number, &permits): (usize, &u64)| Task::new(&limiter, permits, number, &log);
    let mut tasks: Vec<Task> = sizes.iter().enumerate().map(task).collect();
    assert!(tasks.iter_mut().all(|task| task.poll().is_pending()));
    assert_eq!((limiter.waiting(), log.take()), (6, vec![]));
    assert_eq!(limiter.try_acquire(1), Err(AcquireError::Empty));
    let mut woken = Vec::new();
    for _ in 0..350 {
        time.advance(MS);
        for number in log.take() {
            assert_eq!(tasks[number].poll(), Poll::Ready(Ok(())));
            woken.push(((time.now() - Instant::ZERO).as_millis(), number));
        }
    }
    // A batch of 4 + 1 permits, then one of 1 + 1. The request for 9 needs the next period, and the
    // last one takes what that leaves.
    let expected = [(1100, 0), (1100, 1), (1103, 2), (1103, 3), (1200, 4), (1200, 5)];
    assert_eq!(woken, expected);
    assert_conserved(limiter.counts(), limiter.available());
}

#[test]
fn dropped_futures_return_their_permits() {
    let mut rng = Rng::new(seed("bandwidth", "dropped_futures_return_their_permits"));
    for _ in 0..crate::support::rounds(200) {
        let time = VirtualTime::new();
        let (batch, gap) = (1 + rng.below(4) as u32, Duration::from_nanos(rng.below(5_000_000)));
        let limiter = time.timers().limiter(10, MS * 100).extra(rng.below(10)).release(batch, gap);
        let limiter = limiter.start().unwrap();
        let log = Log::new();
        let (mut tasks, mut served) = (Vec::<Option<Task>>::new(), 0u64);
        for number in 0..60 {
            let permits = 1 + rng.below(10);
            let mut task = Task::new(&limiter, permits, number, &log);
            let is_ready = task.poll().is_ready();
            served += if is_ready { permits } else { 0 };
            tasks.push((!is_ready).then_some(task));
            if rng.below(3) == 0 {
                time.advance(Duration::from_nanos(rng.below(40_000_000)));
            }
            if rng.below(2) == 0 {
                // Either queued, or woken and not polled.
                let victim = rng.below(tasks.len() as u64) as usize;
                tasks[victim] = None;
            }
            for woken in log.take() {
                let Some(task) = tasks[woken].as_mut().filter(|_| rng.below(4) > 0) else {
                    continue;
                };
                assert_eq!(task.poll(), Poll::Ready(Ok(())));
                tasks[woken] = None;
            }
        }
        for _ in 0..100 {
            time.advance(MS * 100);
            for task in tasks.iter_mut().filter(|task| task.is_some()) {
                if task.as_mut().unwrap().poll().is_ready() {
                    *task = None;
                }
            }
        }
        assert!(tasks.iter().all(Option::is_none), "all have been served");
        assert_eq!(limiter.waiting(), 0);
        assert!(limiter.counts().used >= u128::from(served));
        assert_conserved(limiter.counts(), limiter.available());
    }
}

#[test]
fn a_waker_that_panics_is_counted() {
    let time = VirtualTime::new();
    let limiter = time.timers().limiter(2, MS * 100).start().unwrap();
    limiter.try_acquire(2).unwrap();
    let mut first = Box::pin(limiter.acquire(1));
    let waker = calls(|| panic!("in a waker"));
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let log = Log::new();
    let mut others: Vec<Task> = (0..3).map(|n| Task::new(&limiter, 1, n, &log)).collect();
    assert!(others.iter_mut().all(|task| task.poll().is_pending()));
    time.advance(MS * 101);
    assert_eq!((log.take(), time.timers().stats().panics), (vec![0], 1));
    time.advance(MS * 100);
    assert_eq!(log.take(), [1, 2]);
}

#[test]
fn impossible_groups_are_refused() {
    let time = VirtualTime::new();
    let timers = time.timers();
    assert_eq!(timers.limiter(0, MS).start().err(), Some(BandwidthError::QuotaZero));
    let phase = Duration::from_millis(2);
    let error = timers.limiter(1, MS).phase(Phase::Fixed(phase)).start().err();
    let beyond = BandwidthError::PhaseBeyondPeriod { phase, period: Duration::from_millis(1) };
    assert_eq!(error, Some(beyond));
    let above = timers.throttle(MS * 100_000, MS).start().err();
    assert!(matches!(above, Some(BandwidthError::QuotaAboveMachine { .. })), "{above:?}");
    assert_eq!(timers.phase_count(MS), 0, "all phases are free");
    let limiter = timers.limiter(5, MS).extra(2).start().unwrap();
    assert_eq!(limiter.try_acquire(8), Err(AcquireError::NeverEnough { most: 7 }));
    let mut never = Task::new(&limiter, 8, 0, &Log::new());
    assert_eq!(never.poll(), Poll::Ready(Err(AcquireError::NeverEnough { most: 7 })));
    assert_eq!(limiter.try_acquire(0), Ok(()));
}

/// Goal: whatever the workers of a group do, it charges exactly what they use, and they use no more
/// than its quota.
/// Method: threads join, work, check, rest and leave at random, until the group has met its limit.
/// Each reads its CPU time just outside and just inside of each membership.
#[test]
fn random_workers_are_charged_for_what_they_use() {
    let seed = seed("bandwidth", "random_workers_are_charged_for_what_they_use");
    let timers = Timers::builder().bases(2).start().unwrap();
    let (quota, period) = (MS, MS * 10);
    let throttle = timers.throttle(quota, period).slice(MS / 4).extra(MS).start().unwrap();
    drop(timers);
    let begun = std::time::Instant::now();
    let work = |number: u64| {
        let (mut rng, throttle) = (Rng::new(seed + number), throttle.clone());
        let (mut inside, mut outside) = (0, 0);
        // This takes longer if other processes use the CPUs.
        for round in 0.. {
            if round >= 12 && throttle.counts().throttled > 0 {
                break;
            }
            let before = thread_time();
            let mut worker = throttle.clone().join().unwrap();
            let joined = thread_time();
            for _ in 0..rng.below(40) {
                (0..rng.of_any_size(17)).for_each(|n| _ = std::hint::black_box(n));
                match rng.below(8) {
                    0 => worker.rest().unwrap(),
                    1 => std::thread::yield_now(),
                    _ => _ = worker.check().unwrap(),
                }
            }
            inside += (thread_time() - joined).as_nanos();
            drop(worker);
            outside += (thread_time() - before).as_nanos();
        }
        (inside, outside)
    };
    let used: Vec<(u128, u128)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (inside, outside) = used.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let counts = throttle.counts();
    assert!(inside <= counts.used && counts.used <= outside, "{inside}..{outside}: {counts:?}");
    assert_eq!((throttle.waiting(), counts.throttled), (0, counts.released), "{counts:?}");
    // A thread may owe what it used between two checks.
    let periods = begun.elapsed().as_nanos() as f64 / period.as_nanos() as f64;
    let most = (periods + 2.0) * quota.as_nanos() as f64 + 6e6;
    assert!((counts.used as f64) < most, "{counts:?} in {periods} periods");
}

#[test]
fn no_worker_stays_parked() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let (gate, pass) = Gate::shared();
    let hog = timers.hrtimer(move |_| pass.pass());
    let throttle = timers.throttle(MS, MS * 10).start().unwrap();
    hog.start(Duration::ZERO).unwrap();
    gate.wait_inside();
    let waits = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let (throttle, waits) = (throttle.clone(), Arc::clone(&waits));
            std::thread::spawn(move || {
                let mut worker = throttle.join().unwrap();
                // One of them leaves early, out of order.
                let most = if number == 0 { 1 } else { 3 };
                let mut waited = 0;
                while waited < most {
                    for n in 0..20_000u64 {
                        std::hint::black_box(n);
                    }
                    if worker.check() == Ok(true) {
                        waited += 1;
                        waits.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    drop(throttle);
    wait_until("all have waited and continued", || waits.load(Ordering::SeqCst) == 7);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    gate.open();
}

#[test]
fn rest_returns_unused_quota() {
    let timers = Timers::process().unwrap();
    let throttle = timers.throttle(MS * 20, MS * 1_000).slice(MS * 20).start().unwrap();
    let mut worker = throttle.join().unwrap();
    assert_eq!(worker.check(), Ok(false));
    let checked = Mutex::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut second = throttle.join().unwrap();
            *checked.lock().unwrap() = second.check().ok();
        });
        wait_until("the second waits", || throttle.waiting() == 1);
        worker.rest().unwrap();
    });
    assert_eq!(*checked.lock().unwrap(), Some(true));
    // The second worker returned its unused quota when it was dropped, so a third does not wait.
    assert_eq!(throttle.join().unwrap().check(), Ok(false));
    assert_eq!(throttle.counts().refills, 0, "no refill was needed");
}
