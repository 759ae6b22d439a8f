//! The simulator as a tester: random histories of the timer core on random machines.
//!
//! A seed decides everything: the machine (2 to 64 CPUs), the settings, which timers there are,
//! what each CPU's program does with its own, how long callbacks take, which bases go offline and
//! come back, and which interrupts are late. First comes the *safety phase*, with faults; then
//! the *liveness phase*, without: everything that is still armed has to fire in time.
//!
//! The checkers stand outside of the code under test. They know only what was asked for, what
//! came back, and which callbacks ran:
//!
//! - expiry: no callback before its time (W1), none that nobody asked for, none of a cancelled
//!   arming (X10), nothing lost (D8), nothing late once the faults are over;
//! - cancel: what a cancel says is what has happened; after one that waits the callback is not
//!   running (X1); a callback never overlaps itself (X2);
//! - bases: [`Bases::check`](tickless_core::base::Bases::check) finds nothing, the armed device
//!   included (R1);
//! - the run comes to its end: nobody waits for ever.

use crate::cpu;
use crate::engine::{self, Ended, Machine};
use crate::fault::Faults;
use crate::irq::Vector;
use crate::os::{Class, Config, IdleTick, Kernel};
use crate::platform::{self, Sim};
use crate::ps::Ps;
use crate::random::Random;
use crate::spec::Spec;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use tickless_core::base::{Deferral, Family, Options, Settings, Started, WheelEvents};
use tickless_core::cancel::Cancel;
use tickless_core::expiry::Verdict;
use tickless_core::link::{OwnedTimer, QueueLink, WheelLink};
use tickless_core::queue::Window;
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};

/// What a history came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct History {
    /// CPUs of its machine.
    pub cpus: u16,
    /// Armings.
    pub armed: u64,
    /// Callbacks.
    pub fired: u64,
    /// Armings that were cancelled.
    pub cancelled: u64,
    /// Times a base went offline.
    pub offline: u64,
    /// What the engine did.
    pub digest: u64,
}

/// What went wrong in a history, and how to see it again.
#[derive(Debug)]
pub struct Violation {
    /// The history's seed.
    pub seed: u64,
    /// When it was noticed.
    pub at: Ns,
    /// What it was.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { seed, at, what } = self;
        write!(f, "at {at:?}: {what}; again with: cargo run --example fuzz -- {seed}")
    }
}

impl std::error::Error for Violation {}

/// When the safety phase ends.
const SAFE_UNTIL: Ns = Ns::from_ms(30);
/// Nothing is armed for longer than this.
const FARTHEST: Ns = Ns::from_ms(8);
/// A coarse timer's granule there, a tick, and the callbacks before it.
const LATE_MAX: Ns = Ns::from_ms(6);

/// Runs the history of a seed, on a machine like `spec` with other numbers of sockets and cores.
pub fn history(spec: &Spec, seed: u64) -> Result<History, Violation> {
    let oracle = Rc::new(Oracle::default());
    let run = run(spec, seed, &oracle);
    let found = oracle.violation.borrow_mut().take();
    let wrong = |at, what| Violation { seed, at, what };
    match (found, run) {
        (Some((at, what)), _) => Err(wrong(at, what)),
        (None, Err(error)) => Err(wrong(Ns::ZERO, error.to_string())),
        (None, Ok(history)) => Ok(history),
    }
}

/// What has been asked for, and what came of it.
#[derive(Default)]
struct Oracle {
    violation: RefCell<Option<(Ns, String)>>,
    armed: Cell<u64>,
    fired: Cell<u64>,
    cancelled: Cell<u64>,
    offline: Cell<u64>,
}

impl Oracle {
    fn fail(&self, what: String) {
        let mut violation = self.violation.borrow_mut();
        if violation.is_none() {
            *violation = Some((engine::clock().to_ns(), what));
        }
        engine::stop();
    }

    fn add(counter: &Cell<u64>) {
        counter.set(counter.get() + 1);
    }
}

/// What is known of one timer. Its program is the only one that starts and cancels it.
#[derive(Default)]
struct Fact {
    /// The armings that have not fired yet, oldest first: which it is, and when it may fire. One
    /// whose callback has begun stays until that says so.
    due: RefCell<Vec<(u64, Ns)>>,
    armings: Cell<u64>,
    running: Cell<bool>,
}

/// One timer of either family, and what is known of it.
struct Subject {
    timer: Box<dyn Armed>,
    fact: Rc<Fact>,
}

/// What both families can do.
trait Armed {
    fn start(&self, window: Window, now: Ns, options: Options) -> Option<Started>;
    fn cancel(&self, how: How) -> Cancel;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Once,
    UnlessRunning,
    AndWait,
}

impl<L: Family> Armed for OwnedTimer<Sim, L> {
    fn start(&self, window: Window, now: Ns, options: Options) -> Option<Started> {
        self.start(window, now, options).ok()
    }

    fn cancel(&self, how: How) -> Cancel {
        match how {
            How::Once => self.cancel(),
            How::UnlessRunning => self.try_cancel(),
            How::AndWait => self.cancel_sync(),
        }
    }
}

/// Late interrupts, while the safety phase lasts.
struct Late {
    random: Random,
    most: u64,
}

impl Faults for Late {
    fn interrupt(&mut self, _: CpuId, _: Vector) -> Option<Ns> {
        Some(Ns(self.draw(self.most)))
    }

    fn device(&mut self, _: CpuId, at: Ns) -> Ns {
        if at > SAFE_UNTIL { Ns::ZERO } else { Ns(self.draw(10 * self.most)) }
    }
}

impl Late {
    /// Mostly nothing.
    fn draw(&mut self, most: u64) -> u64 {
        if self.random.below(4) > 0 { 0 } else { self.random.below(most + 1) }
    }
}

fn run(spec: &Spec, seed: u64, oracle: &Rc<Oracle>) -> io::Result<History> {
    let mut random = Random::new(seed);
    let (sockets, cores) = (1 + random.below(4), 1 + random.below(16));
    let cores = if sockets * cores < 2 { 2 } else { cores };
    let spec = spec
        .with("topology.sockets", sockets as f64)
        .with("topology.cores_per_socket", cores as f64)
        .with("topology.sockets_per_group", 1.0 + random.below(sockets) as f64);
    let mut machine = Machine::new(spec.costs());
    let cpus = (sockets * cores) as u16;
    let most = [0, 5_000, 50_000][random.below(3) as usize];
    machine.inject(Late { random: Random::new(random.draw()), most });
    let config = draw_config(&mut random);
    let kernel = Kernel::boot(&mut machine, config)?;
    if config.timers.deferral != Deferral::None {
        kernel.start_expirers(&mut machine, Class::Fifo(1))?;
    }
    let left = Rc::new(Cell::new(cpus));
    let mut subjects = Vec::new();
    for _ in 0..cpus {
        let count = 1 + random.below(6);
        subjects.push((0..count).map(|_| subject(&kernel, oracle, &mut random)).collect());
    }
    let subjects: Rc<Vec<Vec<Subject>>> = Rc::new(subjects);
    for cpu in 0..cpus {
        let program = Program {
            kernel: Rc::clone(&kernel),
            oracle: Rc::clone(oracle),
            subjects: Rc::clone(&subjects),
            left: Rc::clone(&left),
            random: RefCell::new(Random::new(random.draw())),
            cpu: CpuId(cpu),
            cpus,
            // A tick would move away with its base, and with it what the wheel rides on.
            bases_go: config.timers.wheel == WheelEvents::Device,
        };
        kernel.spawn(&mut machine, Class::Fair, Some(CpuId(cpu)), move || program.run())?;
    }
    let ended = machine.run(Ns::from_secs(5));
    if ended != Ended::Stopped {
        oracle.fail(format!("{} programs wait for ever: {ended:?}", left.get()));
    }
    let digest = machine.digest();
    if oracle.violation.borrow().is_some() {
        // Timers may be anywhere; nobody touches them any more.
        std::mem::forget((machine, subjects, kernel));
    } else {
        machine.finish();
    }
    let (armed, fired) = (oracle.armed.get(), oracle.fired.get());
    let (cancelled, offline) = (oracle.cancelled.get(), oracle.offline.get());
    Ok(History { cpus, armed, fired, cancelled, offline, digest })
}

fn draw_config(random: &mut Random) -> Config {
    let mut pick = |end| random.below(end);
    let deferral = [Deferral::None, Deferral::OnExpiry, Deferral::EveryTick][pick(3) as usize];
    // Without its own thread the wheel needs the device.
    let wheel = if deferral == Deferral::None || pick(2) == 0 {
        WheelEvents::Device
    } else {
        WheelEvents::Tick
    };
    let policy = Policy::ALL[pick(3) as usize];
    // A tick that stops cannot be what the wheel rides on.
    let stops = wheel == WheelEvents::Device && pick(2) == 0;
    Config {
        timers: Settings { policy, deferral, wheel, ..Settings::default() },
        tick: Ns::from_ms(1),
        skew: Ns(pick(2) * 37_000),
        idle: if stops { IdleTick::Stops } else { IdleTick::Keeps },
    }
}

fn subject(kernel: &Rc<Kernel>, oracle: &Rc<Oracle>, random: &mut Random) -> Subject {
    let fact = Rc::new(Fact::default());
    let takes = Ps::from_ns(Ns([100, 2_000, 60_000][random.below(3) as usize]));
    let (seen, oracle) = (Rc::clone(&fact), Rc::clone(oracle));
    let callback = kernel.callback(move |_| {
        // By the machine's clock, not by what the core says that it is.
        fire(&oracle, &seen, engine::clock().to_ns());
        cpu::work(takes);
        seen.running.set(false);
        Verdict::Done
    });
    let bases = kernel.bases();
    let timer: Box<dyn Armed> = if random.below(2) == 0 {
        Box::new(OwnedTimer::<Sim, QueueLink>::new(bases, callback))
    } else {
        Box::new(OwnedTimer::<Sim, WheelLink>::new(bases, callback))
    };
    Subject { timer, fact }
}

fn fire(oracle: &Oracle, fact: &Fact, now: Ns) {
    Oracle::add(&oracle.fired);
    if fact.running.replace(true) {
        oracle.fail("a callback overlaps itself".to_string());
    }
    let mut due = fact.due.borrow_mut();
    match due.iter().position(|due| due.1 <= now) {
        Some(place) => {
            due.remove(place);
        }
        None if due.is_empty() => oracle.fail("a callback that nobody asked for".to_string()),
        None => oracle.fail(format!("a callback at {now:?}, due only at {due:?}")),
    }
}

/// What one CPU does with its timers.
struct Program {
    kernel: Rc<Kernel>,
    oracle: Rc<Oracle>,
    subjects: Rc<Vec<Vec<Subject>>>,
    left: Rc<Cell<u16>>,
    random: RefCell<Random>,
    cpu: CpuId,
    cpus: u16,
    /// Do bases go offline in this history?
    bases_go: bool,
}

impl Program {
    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().below(end)
    }

    fn run(&self) {
        while engine::clock() < Ps::from_ns(SAFE_UNTIL) {
            self.step();
            cpu::work(Ps(1_000 * self.below(400_000)));
        }
        // The liveness phase: all bases are back, nothing is asked for, everything fires.
        if self.cpu.0 == 0 {
            for cpu in 0..self.cpus {
                let _ = self.kernel.bases().online(CpuId(cpu));
            }
        }
        cpu::wait_until(Ps::from_ns(SAFE_UNTIL.after(FARTHEST).after(LATE_MAX)));
        for subject in &self.subjects[self.cpu.index()] {
            let due = subject.fact.due.borrow().clone();
            if !due.is_empty() {
                self.oracle.fail(format!("due at {due:?} and never fired"));
            }
        }
        self.check();
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            engine::stop();
        }
    }

    fn step(&self) {
        let mine = &self.subjects[self.cpu.index()];
        let subject = &mine[self.below(mine.len() as u64) as usize];
        match self.below(20) {
            0..10 => self.start(subject),
            10..13 => self.cancel(subject, How::Once),
            13..15 => self.cancel(subject, How::UnlessRunning),
            15..18 => self.cancel(subject, How::AndWait),
            18 if self.bases_go => self.take_a_base_off_or_on(),
            _ => self.check(),
        }
    }

    fn start(&self, subject: &Subject) {
        let now = platform::now();
        let soft = now.after(Ns(self.below(FARTHEST.0)));
        let window = Window::new(soft, soft.after(Ns(self.below(100_000))));
        let pinned = (self.below(3) == 0).then(|| CpuId(self.below(self.cpus.into()) as u16));
        let fact = &subject.fact;
        let mine = fact.armings.get() + 1;
        fact.armings.set(mine);
        // Before the call: it may fire before the call returns.
        fact.due.borrow_mut().push((mine, soft));
        let started = subject.timer.start(window, now, Options { pinned, ..Options::default() });
        Oracle::add(&self.oracle.armed);
        match started {
            None => self.oracle.fail("an arming was refused".to_string()),
            // The one before has fired, or its callback is about to say so.
            Some(Started::Idle) => {}
            Some(_) => {
                // It has been replaced. If it seems to have fired meanwhile, that was this one.
                let mut due = fact.due.borrow_mut();
                let place = due.iter().position(|due| due.0 == mine - 1);
                match place.or(due.iter().position(|due| due.0 == mine)) {
                    Some(place) => {
                        due.remove(place);
                    }
                    None => self.oracle.fail("replaced an arming that has fired".to_string()),
                }
            }
        }
    }

    fn cancel(&self, subject: &Subject, how: How) {
        let found = subject.timer.cancel(how);
        let fact = &subject.fact;
        let mut due = fact.due.borrow_mut();
        match found {
            Cancel::Pending if due.len() != 1 => {
                self.oracle.fail(format!("cancelled one arming of {due:?}"));
            }
            Cancel::Pending => {
                Oracle::add(&self.oracle.cancelled);
                due.clear();
            }
            Cancel::Idle if !due.is_empty() => {
                self.oracle.fail(format!("says idle, but {due:?} has not fired"));
            }
            Cancel::Running if how == How::AndWait => due.clear(),
            // What was armed since is cancelled; what runs may still have to say so.
            Cancel::Running if how == How::Once => {
                due.truncate(usize::from(!fact.running.get()));
            }
            Cancel::Idle | Cancel::Running => {}
        }
        if how == How::AndWait && fact.running.get() {
            self.oracle.fail("cancelled, waited, and the callback runs".to_string());
        }
    }

    fn check(&self) {
        let cpu = CpuId(self.below(self.cpus.into()) as u16);
        if let Err(fault) = self.kernel.bases().check(cpu) {
            self.oracle.fail(format!("{cpu:?}: {fault}"));
        }
    }

    fn take_a_base_off_or_on(&self) {
        let cpu = CpuId(self.below(self.cpus.into()) as u16);
        let bases = self.kernel.bases();
        if self.below(2) == 0 {
            // The last base cannot go.
            if bases.offline(cpu).is_ok() {
                Oracle::add(&self.oracle.offline);
            }
        } else {
            let _ = bases.online(cpu);
        }
    }
}
