//! A pool of threads that runs jobs at a limited rate, measures them, and can be stopped at any
//! time: it returns the jobs that have not started.
//!
//! The rate is that of a [`Limiter`]: permits in every period. Each job has a timer that marks it
//! as slow if it is not done in time, which is cheap enough to be armed for every job.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tickless::Timers;
use tickless::bandwidth::Limiter;
use tickless::callback::Cancel;

type Job = Box<dyn FnOnce() + Send>;

/// Queued jobs, and the threads that run them.
struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    timers: Timers,
    limiter: Limiter,
    slow_after: Duration,
    done: AtomicU64,
    slow: AtomicU64,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    is_stopped: bool,
}

impl Pool {
    /// Starts `threads` threads, which run at most `jobs` jobs in every period.
    fn start(
        timers: &Timers,
        threads: usize,
        (jobs, period): (u64, Duration),
        slow_after: Duration,
    ) -> Result<Pool, Box<dyn Error>> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            timers: timers.clone(),
            limiter: timers.limiter(jobs, period).start()?,
            slow_after,
            done: AtomicU64::new(0),
            slow: AtomicU64::new(0),
        });
        let workers = (0..threads).map(|_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.work())
        });
        Ok(Pool { workers: workers.collect(), shared })
    }

    fn submit(&self, job: impl FnOnce() + Send + 'static) {
        self.shared.state().jobs.push_back(Box::new(job));
        self.shared.changed.notify_one();
    }

    /// Waits for the running jobs to end. Returns the jobs that have not started.
    fn stop(self) -> VecDeque<Job> {
        let jobs = {
            let mut state = self.shared.state();
            state.is_stopped = true;
            std::mem::take(&mut state.jobs)
        };
        self.shared.changed.notify_all();
        // Wakes the threads that wait for a permit.
        self.shared.limiter.close();
        for worker in self.workers {
            worker.join().expect("no job panics");
        }
        jobs
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no job panics with it")
    }

    fn work(self: Arc<Shared>) {
        let watcher = Arc::clone(&self);
        let slow = self.timers.timeout(move |_| {
            watcher.slow.fetch_add(1, Ordering::Relaxed);
        });
        let slow = slow.labelled("slow job");
        while self.wait_for_turn() {
            let Some(job) = self.state().jobs.pop_front() else { continue };
            slow.start(self.slow_after).expect("it is never shut down");
            job();
            self.done.fetch_add(1, Ordering::Relaxed);
            // The timer either was still pending, or has marked the job as slow: never both.
            assert!(matches!(slow.cancel(), Cancel::Pending | Cancel::Idle | Cancel::Running));
        }
    }

    /// Waits until there is a job and a permit for it. Returns false if the pool has been stopped.
    fn wait_for_turn(&self) -> bool {
        let mut state = self.state();
        while state.jobs.is_empty() && !state.is_stopped {
            state = self.changed.wait(state).expect("no job panics with it");
        }
        let is_stopped = state.is_stopped;
        drop(state);
        // Waits for a period with a free permit.
        !is_stopped && pollster::block_on(self.limiter.acquire(1)).is_ok()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let timers = Timers::process()?;
    let rate = (20, Duration::from_millis(50));
    let pool = Pool::start(&timers, 4, rate, Duration::from_millis(20))?;
    let (begun, shared) = (Instant::now(), Arc::clone(&pool.shared));
    for nth in 0..1000 {
        // Every tenth job is slow.
        pool.submit(move || {
            std::thread::sleep(Duration::from_millis(if nth % 10 == 0 { 60 } else { 1 }))
        });
    }
    std::thread::sleep(Duration::from_millis(300));
    let left = pool.stop();

    let (done, slow) = (shared.done.load(Ordering::Relaxed), shared.slow.load(Ordering::Relaxed));
    println!(
        "{done} jobs in {:?}, {slow} of them slow; {} never begun",
        begun.elapsed(),
        left.len()
    );
    // A permit may have been taken by a worker that then found no job.
    assert_eq!(done + left.len() as u64, 1000, "every job was done or handed back");
    let periods = begun.elapsed().as_nanos() / rate.1.as_nanos() + 1;
    assert!(u128::from(done) <= periods * u128::from(rate.0), "the rate was kept");
    assert!(slow >= done / 10 - 4 && done > 20, "slow jobs are noticed");

    let (counts, stats) = (shared.limiter.counts(), timers.stats());
    println!("permits used: {}, periods that ran out: {}", counts.used, counts.throttled);
    println!(
        "timers armed: {}, cancelled: {}",
        stats.total().armed + stats.total().rearmed,
        stats.total().cancelled
    );
    drop(shared);
    for leak in timers.leaks() {
        println!("left behind: {leak}");
    }
    Ok(())
}
