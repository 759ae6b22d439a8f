//! The load: a server whose workers steal each other's requests.
//!
//! Each CPU has a worker, some connections, and a queue of requests. A request has four steps: it
//! arms its deadline, pushes the connection's idle timeout out, cancels the deadline, and ends.
//! After each step the request goes to another CPU, drawn at random, with the probability in
//! [`Case::stolen`]. A connection stays on the CPU on which its last request has ended. A worker
//! without requests begins one on one of its connections. It draws the connection by Zipf's law:
//! the more recently one was used, the more often. Every 16th request ends with a new connection.
//!
//! With [`Limits`], each request first takes a permit of a limiter.
//!
//! The queues and the connections' own data take no simulated time. The time beyond the server's
//! own work is that of timers, including interrupts and drivers.

use super::contenders::{Contender, Counted, Heaps, Place, Timers, Wheels};
use super::limiter::{Limiter, Limits};
use super::words::{BiasRule, Line, Process};
use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use tickless_core::time::{CpuId, Ns};
use tickless_machine::cpu;
use tickless_machine::engine::{self, Machine};
use tickless_machine::ps::Ps;
use tickless_machine::random::Random;
use tickless_machine::spec::Spec;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    pub contender: Contender,
    /// How many of 1,000 steps happen on another CPU than the step before.
    pub stolen: u64,
    pub limits: Limits,
    /// The simulated time in which figures are taken, after a warm-up of half that time.
    pub span: Ns,
}

/// The figures of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Nanoseconds of a CPU.
    pub time_per_request: f64,
    pub lines_per_operation: f64,
    pub membarriers_per_1000: f64,
    pub futexes_per_1000: f64,
    /// The duration that one of 1,000 operations exceeds, in ns.
    pub slow_operation: f64,
    pub digest: u64,
}

const CONNECTIONS: u64 = 64;
pub const REQUESTS_PER_CONNECTION: u64 = 16;
/// The server's work between two steps.
pub const WORK: Ns = Ns(1_000);

struct Request<C> {
    connection: C,
    step: u8,
}

struct Server<T: Timers> {
    timers: T,
    process: Rc<Process>,
    case: Case,
    /// One limiter for all CPUs, one for each CPU, or no limiter.
    limiters: Vec<Line<Limiter>>,
    queues: Vec<RefCell<VecDeque<Request<T::Connection>>>>,
    /// The idle connections of each CPU; the most recently used one comes last.
    idle: Vec<RefCell<Vec<T::Connection>>>,
    opened: Cell<u64>,
    /// How many workers have opened their connections.
    ready: Cell<usize>,
    totals: RefCell<Totals>,
}

struct Totals {
    time: Ps,
    requests: u64,
    operations: u64,
    lines: u64,
    durations: Histogram<u32>,
}

/// What a worker has counted so far.
#[derive(Clone, Copy, Default)]
struct Count {
    requests: u64,
    operations: u64,
    /// The server's own work.
    work: Ps,
    lines: u64,
    at: Ps,
}

impl<T: Timers> Server<T> {
    /// Serves requests on one CPU. Counts from `begin` to `end`; the time before is a warm-up.
    fn serve(&self, cpu: CpuId, seed: u64) {
        let (end, begin) = (self.case.span.0 * 3 / 2, self.case.span.0 / 2);
        let mut random = Random::new(seed ^ u64::from(cpu.0) << 32);
        let mut counted = Count::default();
        // Workers do not begin in step.
        cpu::charge(Ps::from_ns(Ns(random.below(4 * WORK.0))));
        let until = |time: u64, counted: &mut Count, random: &mut Random| {
            while cpu::clock().to_ns().0 < time {
                self.one_step(cpu, counted, random);
            }
            Count { at: cpu::clock(), lines: cpu::lines_moved(), ..*counted }
        };
        let warm = until(begin, &mut counted, &mut random);
        if cpu.0 == 0 {
            self.totals.borrow_mut().durations.reset();
            self.process.membarriers.set(0);
            self.process.futexes.set(0);
        }
        let done = until(end, &mut counted, &mut random);
        let mut totals = self.totals.borrow_mut();
        totals.time += (done.at - warm.at) - (done.work - warm.work);
        totals.requests += done.requests - warm.requests;
        totals.operations += done.operations - warm.operations;
        totals.lines += done.lines - warm.lines;
        engine::end();
    }

    /// Does one step of a request, then passes the request to another worker or keeps it.
    fn one_step(&self, cpu: CpuId, counted: &mut Count, random: &mut Random) {
        let queued = self.queues[cpu.index()].borrow_mut().pop_front();
        let Some(mut request) = queued.or_else(|| self.begin(cpu, random)) else {
            // All connections of this CPU are busy elsewhere. Let the other CPUs act.
            let begun = cpu::clock();
            cpu::work(Ps::from_ns(WORK));
            counted.work += cpu::clock() - begun;
            return;
        };
        self.server_work(counted);
        let connection = &request.connection;
        match request.step {
            0 => {
                if let Some(limiter) = self.limiter(cpu) {
                    self.timed(counted, || limiter.take());
                }
                self.timed(counted, || self.timers.arm(connection));
            }
            1 => self.timed(counted, || self.timers.push_out(connection)),
            2 => self.timed(counted, || self.timers.cancel(connection)),
            _ => {
                counted.requests += 1;
                self.end(cpu, request.connection, counted, random);
                return;
            }
        }
        request.step += 1;
        let goes = random.below(1_000) < self.case.stolen;
        let to = if goes { random.below(self.queues.len() as u64) as usize } else { cpu.index() };
        self.queues[to].borrow_mut().push_back(request);
    }

    /// Returns the limiter from which requests on this CPU take their permits.
    fn limiter(&self, cpu: CpuId) -> Option<&Limiter> {
        let place = cpu.index().checked_rem(self.limiters.len())?;
        Some(&self.limiters[place].0)
    }

    fn server_work(&self, counted: &mut Count) {
        cpu::charge(Ps::from_ns(WORK));
        counted.work += Ps::from_ns(WORK);
    }

    /// Counts an operation on timers, and records how long it took.
    fn timed<R>(&self, counted: &mut Count, operation: impl FnOnce() -> R) -> R {
        let begun = cpu::clock();
        let result = operation();
        let ns = (cpu::clock() - begun).to_ns().0;
        // Saturates instead of failing.
        self.totals.borrow_mut().durations.saturating_record(ns);
        counted.operations += 1;
        result
    }

    /// Begins a request on an idle connection: one that was used recently is more likely.
    fn begin(&self, cpu: CpuId, random: &mut Random) -> Option<Request<T::Connection>> {
        let mut idle = self.idle[cpu.index()].borrow_mut();
        let depth = zipf(idle.len() as u64, random);
        let place = idle.len().checked_sub(1 + depth as usize)?;
        Some(Request { connection: idle.remove(place), step: 0 })
    }

    /// Ends a request. One in 16, at random, closes its connection, and a new one is opened.
    fn end(&self, cpu: CpuId, last: T::Connection, counted: &mut Count, random: &mut Random) {
        let closes = random.below(REQUESTS_PER_CONNECTION) == 0;
        let connection = if closes {
            self.timed(counted, || self.timers.close(last));
            self.timed(counted, || self.open(cpu))
        } else {
            last
        };
        self.idle[cpu.index()].borrow_mut().push(connection);
    }

    fn open(&self, cpu: CpuId) -> T::Connection {
        self.opened.set(self.opened.get() + 1);
        self.timers.open(self.opened.get(), cpu)
    }
}

/// Draws a place from 0 to `count` - 1: place `n` in proportion to 1 / (n + 1) (Zipf's law).
pub fn zipf(count: u64, random: &mut Random) -> u64 {
    let share = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    ((count as f64 + 1.0).powf(share) as u64).saturating_sub(1).min(count.saturating_sub(1))
}

/// Simulates the server for the case's span of time.
pub fn run(spec: &Spec, case: Case, seed: u64) -> io::Result<Outcome> {
    let cpus = spec.costs().topology.cpus();
    match case.contender {
        Contender::Ours | Contender::Fixed | Contender::Unbiased => {
            serve(spec, case, seed, || Wheels::new(cpus, Place::Here, Some(Counted::new(cpus))))
        }
        Contender::Mutex => serve(spec, case, seed, || Wheels::new(1, Place::Here, None)),
        Contender::Shards => serve(spec, case, seed, || Wheels::new(cpus, Place::Hashed, None)),
        Contender::Heaps => serve(spec, case, seed, || Heaps::new(cpus)),
    }
}

fn serve<T: Timers>(
    spec: &Spec,
    case: Case,
    seed: u64,
    timers: impl FnOnce() -> T,
) -> io::Result<Outcome> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let process = Process::start(spec);
    let durations = Histogram::new_with_bounds(1, 1_000_000_000, 3).map_err(io::Error::other)?;
    let totals = Totals { time: Ps::ZERO, requests: 0, operations: 0, lines: 0, durations };
    let server = Rc::new(Server {
        timers: timers(),
        process: Rc::clone(&process),
        case,
        limiters: case.limits.limiters(cpus),
        queues: (0..cpus).map(|_| RefCell::default()).collect(),
        idle: (0..cpus).map(|_| RefCell::default()).collect(),
        opened: Cell::new(0),
        ready: Cell::new(0),
        totals: RefCell::new(totals),
    });
    for cpu in (0..cpus).map(CpuId) {
        // Open connections before the machine runs, which takes no simulated time.
        let open = |_| server.open(cpu);
        server.idle[cpu.index()].borrow_mut().extend((0..CONNECTIONS).map(open));
    }
    let rule = case.contender.rule();
    let earns = case.stolen == 0 && rule != BiasRule::Never;
    process.rule.set(if earns { BiasRule::Fixed(2) } else { rule });
    start(&mut machine, &server, cpus, seed ^ spec.seed << 8)?;
    machine.run(Ns::NEVER);
    let outcome = server.outcome(machine.digest());
    machine.finish();
    drop((machine, server));
    Process::end();
    Ok(outcome)
}

/// Starts two threads on each CPU: a worker, and a driver that fires timers.
fn start<T: Timers>(
    machine: &mut Machine,
    server: &Rc<Server<T>>,
    cpus: u16,
    seed: u64,
) -> io::Result<()> {
    let process = Rc::clone(&server.process);
    machine.on_interrupt(move |vector| process.interrupted(vector));
    let process = Rc::clone(&server.process);
    machine.on_return(move || process.switch_to_driver());
    for cpu in (0..cpus).map(CpuId) {
        let here = Rc::clone(server);
        let worker = machine.start(cpu, move || {
            here.earn_bias(cpu);
            here.serve(cpu, seed);
        })?;
        let here = Rc::clone(server);
        let base = CpuId(cpu.0 % server.timers.bases());
        let driver = machine.add(move || {
            here.process.drive(base, || here.timers.expire(base));
        })?;
        server.process.set_fibers(cpu, [worker, driver]);
    }
    Ok(())
}

impl<T: Timers> Server<T> {
    /// Lets the worker get the bias of its base's lock before the run if nothing is stolen. A real
    /// thread gets it after up to a second, which is too long to simulate.
    fn earn_bias(&self, cpu: CpuId) {
        if self.process.rule.get() == BiasRule::Fixed(2) {
            let connection = self.open(cpu);
            for _ in 0..3 {
                self.timers.arm(&connection);
                self.timers.cancel(&connection);
            }
            self.idle[cpu.index()].borrow_mut().push(connection);
        }
        self.ready.set(self.ready.get() + 1);
        if self.ready.get() == self.queues.len() {
            self.process.rule.set(self.case.contender.rule());
        }
    }

    fn outcome(&self, digest: u64) -> Outcome {
        let totals = self.totals.borrow();
        let requests = totals.requests.max(1) as f64;
        let per_1000 = |count: u64| 1e3 * count as f64 / requests;
        Outcome {
            time_per_request: totals.time.as_ns_f64() / requests,
            lines_per_operation: totals.lines as f64 / totals.operations.max(1) as f64,
            membarriers_per_1000: per_1000(self.process.membarriers.get()),
            futexes_per_1000: per_1000(self.process.futexes.get()),
            slow_operation: totals.durations.value_at_quantile(0.999) as f64,
            digest,
        }
    }
}
