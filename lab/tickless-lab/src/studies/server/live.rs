//! The load on two CPUs of this machine, with the library as programs use it, beside the simulated
//! run of the machine `host` with the same load.

use super::STUDY;
use super::contenders::Contender;
use super::limiter::Limits;
use super::model::{self, Case, REQUESTS_PER_CONNECTION, WORK, zipf};
use crate::error::LabError;
use crate::machines;
use crate::measure::{self, Spread, Stopwatch, interleave};
use crate::progress::Progress;
use crate::studies::cell::{Band, Cell};
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use crate::studies::sim;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tickless::{Timeout, Timers};
use tickless_core::time::Ns;
use tickless_machine::random::Random;

const STOLEN: [u64; 4] = [0, 10, 100, 500];
const DEADLINE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(60);

/// An operation that takes longer than this was interrupted, and does not count.
const INTERRUPTED_NS: f64 = 50_000.0;

struct Connection {
    deadline: Timeout,
    idle: Timeout,
}

type Queue = Mutex<VecDeque<(Connection, u8)>>;

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    request.reject_cpus("study server --live runs on two CPUs; leave --cpus out")?;
    let mut result = StudyResult::live("server", request);
    let cpus = measure::cpus();
    let pair = [cpus[0], cpus[cpus.len() - 1]];
    let watch = Stopwatch::calibrated();
    let turns = request.effort.turns(2, 7, 15);
    let requests = request.effort.pick(3_000, 60_000, 200_000);
    let taken = interleave("serving", STOLEN.len(), turns, progress, |at| {
        serve(&watch, pair, STOLEN[at], requests)
    })?;
    let host = machines::find("host")?;
    for (&stolen, taken) in STOLEN.iter().zip(taken) {
        let span = request.effort.pick(Ns::from_us(300), Ns::from_ms(20), Ns::from_ms(50));
        let case = Case { contender: Contender::Ours, stolen, limits: Limits::None, span };
        let simulated = model::run(&host, case, 1).map_err(sim::no_memory)?.time_per_request;
        let percent = stolen / 10;
        let id = format!("2.ours.{percent}pct");
        let ratio = Spread::of(taken.iter().map(|ns| ns / simulated));
        let cell = Cell::live(format!("{id}.ns_per_request"), "ns", Spread::of(taken));
        result.cells.push(cell);
        let cell = Cell::live(format!("{id}.live_over_simulated"), "x", ratio);
        result.cells.push(cell.within(Band::between(0.7, 1.3)));
    }
    result.explain(STUDY.published.text, &[]);
    Ok(result)
}

/// Returns the time that one request spends in timers, in nanoseconds.
fn serve(watch: &Stopwatch, cpus: [usize; 2], stolen: u64, requests: u64) -> Result<f64, LabError> {
    let timers = Timers::builder().start()?;
    let queues = [(); 2].map(|()| Queue::default());
    let is_over = AtomicBool::new(false);
    let sums = measure::on_cpus(&cpus, "a worker", |side| {
        Worker::new(watch, &timers, &queues, side, stolen).serve(requests, &is_over)
    })?;
    let total = sums.iter().map(|(ns, _)| ns).sum::<f64>();
    Ok(total / sums.iter().map(|(_, done)| done).sum::<f64>())
}

struct Worker<'a> {
    watch: &'a Stopwatch,
    timers: &'a Timers,
    queues: &'a [Queue; 2],
    side: usize,
    stolen: u64,
    random: Random,
    idle: Vec<Connection>,
    ns: f64,
}

impl<'a> Worker<'a> {
    fn new(
        watch: &'a Stopwatch,
        timers: &'a Timers,
        queues: &'a [Queue; 2],
        side: usize,
        stolen: u64,
    ) -> Worker<'a> {
        let random = Random::new(side as u64 + 1);
        let mut worker =
            Worker { watch, timers, queues, side, stolen, random, idle: Vec::new(), ns: 0.0 };
        worker.idle = (0..64).map(|_| worker.open()).collect();
        worker
    }

    /// Serves requests, of which the first tenth warms up. Returns the time spent in timers, in ns,
    /// and the number of requests. Ends when either thread has served all its requests, because the
    /// other thread could wait forever for connections in the queue of the one that has ended.
    fn serve(mut self, requests: u64, is_over: &AtomicBool) -> (f64, f64) {
        let (mut done, mut counted_from) = (0, None);
        while done < requests && !is_over.load(Ordering::Relaxed) {
            done += u64::from(self.one_step());
            if counted_from.is_none() && done >= requests / 10 {
                counted_from = Some(done);
                self.ns = 0.0;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        counted_from.map_or((0.0, 0.0), |from| (self.ns, (done - from) as f64))
    }

    /// Makes one step of a request; returns whether a request has ended.
    fn one_step(&mut self) -> bool {
        let (side, random) = (self.side, &mut self.random);
        let queued = lock(&self.queues[side]).pop_front();
        let begun = || {
            let depth = zipf(self.idle.len() as u64, random);
            let place = self.idle.len().checked_sub(1 + depth as usize)?;
            Some((self.idle.remove(place), 0))
        };
        let step = queued.or_else(begun);
        self.work();
        let Some((connection, step)) = step else { return false };
        match step {
            // Arming fails only after a shut-down.
            0 => self.timed(|| _ = connection.deadline.start(DEADLINE)),
            1 => self.timed(|| _ = connection.idle.start(IDLE)),
            2 => self.timed(|| _ = connection.deadline.cancel()),
            _ => {
                self.end(connection);
                return true;
            }
        }
        let goes = self.random.below(1_000) < self.stolen;
        let to = if goes { self.random.below(2) as usize } else { self.side };
        lock(&self.queues[to]).push_back((connection, step + 1));
        false
    }

    /// Ends a request. One in 16, at random, closes its connection.
    fn end(&mut self, mut connection: Connection) {
        if self.random.below(REQUESTS_PER_CONNECTION) == 0 {
            self.timed(|| drop(connection));
            connection = self.open();
        }
        self.idle.push(connection);
    }

    fn open(&mut self) -> Connection {
        let timers = self.timers;
        let open = || {
            let [deadline, idle] = [0, 1].map(|_| timers.timeout(|_| ()));
            let _ = idle.start(IDLE);
            Connection { deadline, idle }
        };
        let mut opened = None;
        self.timed(|| opened = Some(open()));
        opened.unwrap_or_else(open)
    }

    /// Spins for the time that a server works between two operations.
    fn work(&self) {
        let mut left = WORK.0 as f64;
        while left > 0.0 {
            left -= self.watch.ns(self.watch.counts(std::hint::spin_loop) as f64).max(5.0);
        }
    }

    /// Adds the duration of an operation, unless an interrupt seems to have delayed it.
    fn timed(&mut self, operation: impl FnOnce()) {
        let ns = self.watch.ns(self.watch.counts(operation) as f64);
        if ns < INTERRUPTED_NS {
            self.ns += ns;
        }
    }
}

fn lock(queue: &Queue) -> std::sync::MutexGuard<'_, VecDeque<(Connection, u8)>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
