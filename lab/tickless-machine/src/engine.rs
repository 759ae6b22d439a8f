//! The engine: runs the fibers of all simulated CPUs on one thread, in virtual time. The CPU with
//! the smallest clock always acts next.
//!
//! Each simulated CPU runs one fiber at a time, and the code on it really runs: it loads words,
//! takes locks, calls the library. Every step that takes simulated time goes through here: the CPU
//! waits until no other CPU's clock is smaller, performs the step, and its clock advances by the
//! price of the step.
//!
//! # Guarantees
//!
//! - Deterministic: smallest clock first, ties by CPU number. The same program and seed give
//!   the same run; [`Machine::digest`] distinguishes runs.
//! - Sequentially consistent: accesses happen one after the other, in the order in which the
//!   machine serves them. So the machine cannot find wrong memory orderings; the model checkers in
//!   `tickless-models` do.
//!
//! # Ground rules
//!
//! - A CPU is allowed to perform a cache hit while its clock is ahead of the others' by less than
//!   the duration of the fastest remote access: no access that another CPU begins now could change
//!   the result of the hit.
//! - The rounds of a waiting loop ([`Platform::relax`]) are not simulated: the loop's CPU is parked
//!   until another CPU writes one of the cache lines that the loop has read. Only loops that read
//!   more than [`WATCHED_MAX`] lines are simulated round by round.
//! - The machine's state is not borrowed while a fiber is suspended, because other fibers use it
//!   then. Interrupt handlers run on the stack of the program that they interrupt, as on a real
//!   CPU.
//!
//! [`Platform::relax`]: tickless_core::platform::Platform::relax

use crate::cost::Costs;
use crate::cpu_state::Vector;
use crate::fault::Faults;
use crate::fiber::{self, Fiber, Resumed};
use crate::machine_state::{MachineState, install, uninstall, with, with_cpu};
use crate::ps::Ps;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use tickless_core::time::{CpuId, Ns};

pub use crate::cpu_state::WATCHED_MAX;
pub use crate::fiber::FiberId;
pub use crate::machine_state::Ended;

pub struct Machine {
    state: Option<Box<MachineState>>,
    fibers: Vec<Option<Fiber>>,
}

impl Machine {
    pub fn new(costs: Costs) -> Machine {
        Machine { state: Some(Box::new(MachineState::new(costs))), fibers: Vec::new() }
    }

    fn change<R>(&mut self, f: impl FnOnce(&mut MachineState) -> R) -> Option<R> {
        self.state.as_deref_mut().map(f)
    }

    /// Sets the interrupt handler. It runs on the interrupted CPU, with interrupts disabled there.
    pub fn on_interrupt(&mut self, handler: impl Fn(Vector) + 'static) {
        self.change(|state| state.handler = Some(Rc::new(handler)));
    }

    /// Sets a hook that a CPU calls when it has handled its interrupts, before it returns to the
    /// interrupted program, with interrupts enabled. A simulated kernel switches tasks in it.
    pub fn on_return(&mut self, hook: impl Fn() + 'static) {
        self.change(|state| state.on_return = Some(Rc::new(hook)));
    }

    pub fn inject(&mut self, faults: impl Faults + 'static) {
        self.change(|state| state.faults = Some(Box::new(faults)));
    }

    /// Switches a CPU on, which runs `body` on a new fiber. The CPU is switched off when `body`
    /// returns.
    ///
    /// Fails when there is no memory for a stack. A CPU that does not exist is ignored.
    pub fn start(&mut self, cpu: CpuId, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        let id = self.add(body)?;
        self.change(|state| state.switch_on(cpu, id));
        Ok(id)
    }

    /// Adds a fiber, which runs `body` after a CPU has switched to it with [`switch_to`]. Fails
    /// when there is no memory for a stack.
    pub fn add(&mut self, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        self.fibers.push(Some(Fiber::new(body)?));
        Ok(FiberId(self.fibers.len() as u32 - 1))
    }

    /// Runs the machine until the simulated time `until`, until all CPUs are off or wait forever,
    /// or until a program calls [`stop`].
    ///
    /// A panic on a fiber ends all fibers and is propagated. Programs that have not ended remain
    /// suspended, and the next run continues them. They can still hold locks: inspect what they
    /// share before the run or after [`finish`](Self::finish).
    pub fn run(&mut self, until: Ns) -> Ended {
        match self.try_run(until) {
            Ok(ended) => ended,
            Err(panic) => {
                self.finish();
                resume_unwind(panic)
            }
        }
    }

    /// Runs the machine. Catches a panic of simulated code, so that the machine's state is kept.
    fn try_run(&mut self, until: Ns) -> std::thread::Result<Ended> {
        let Some(mut state) = self.state.take() else { return Ok(Ended::Quiet) };
        state.stopping = false;
        install(state);
        let ended = catch_unwind(AssertUnwindSafe(|| self.turn(Ps::from_ns(until))));
        fiber::clear_yielder();
        self.state = uninstall();
        if ended.is_err() {
            self.change(|state| {
                if let Some(cpu) = state.running.take() {
                    state.switch_off(cpu);
                    state.order.set(cpu, Ps::NEVER);
                }
            });
        }
        ended
    }

    /// Resumes one fiber after another, always that of the CPU that is behind the others.
    fn turn(&mut self, until: Ps) -> Ended {
        loop {
            let fiber = match with(|machine| machine.choose_next(until)) {
                Some(Ok(fiber)) => fiber,
                Some(Err(ended)) => return ended,
                None => return Ended::Quiet,
            };
            let resumed = match self.fibers.get_mut(fiber.0 as usize) {
                Some(Some(fiber)) => fiber.resume(),
                _ => Resumed::Return(()),
            };
            fiber::clear_yielder();
            with(|machine| machine.suspended(fiber, resumed));
            if resumed == Resumed::Return(())
                && let Some(place) = self.fibers.get_mut(fiber.0 as usize)
            {
                *place = None;
            }
        }
    }

    /// Ends all programs, wherever they are. A program that holds a lock or waits for one first
    /// runs until it has released it, and an interrupt handler until it has returned; then all
    /// stacks are unwound. To let programs end by themselves instead, one of them must call [`end`]
    /// in an earlier run.
    pub fn finish(&mut self) {
        self.change(MachineState::drain);
        while self.inside() > 0 {
            // The caller has already seen the first panic: ignore further ones.
            if let Ok(Ended::Quiet) = self.try_run(Ns::NEVER) {
                break;
            }
        }
        if self.inside() > 0 {
            // The remaining programs wait for each other. Unwinding one of them could need a lock
            // that another holds, so leak their stacks.
            self.fibers.drain(..).for_each(std::mem::forget);
        }
        self.fibers.clear();
    }

    fn inside(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.inside)
    }

    pub fn events(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.events)
    }

    /// A hash over the CPU and the time of every step so far. Equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.digest)
    }

    pub fn clock(&self, cpu: CpuId) -> Option<Ps> {
        Some(self.state.as_ref()?.cpus.get(cpu.index())?.clock)
    }

    /// The energy used so far, in joules: that of the cores, which depends on their load, and that
    /// of halted CPUs, which depends on their idle states.
    pub fn joules(&mut self) -> f64 {
        self.change(MachineState::joules).unwrap_or(0.0)
    }

    pub fn costs(&self) -> Option<&Costs> {
        self.state.as_ref().map(|state| &state.costs)
    }
}

/// Requests that all programs end. They must check [`is_ending`] themselves.
pub fn end() {
    with(|machine| machine.ending = true);
}

/// Returns whether [`end`] was called. A program with an endless loop must check this and return.
/// True outside a machine.
pub fn is_ending() -> bool {
    with(|machine| machine.ending).unwrap_or(true)
}

pub fn flush_caches() {
    with(|machine| machine.lines.flush_all());
}

/// Makes [`Machine::run`] return when the running CPU is suspended next.
pub fn stop() {
    with(|machine| machine.stopping = true);
}

pub fn current() -> Option<FiberId> {
    with_cpu(|cpu| cpu.fiber)
}

/// Switches the running CPU to another fiber. Returns when a CPU, possibly another one, switches
/// back to the calling fiber. Interrupts are then disabled or enabled as before the call.
pub fn switch_to(fiber: FiberId) {
    let interrupts = with_cpu(|cpu| cpu.hand_over(fiber));
    fiber::suspend();
    with_cpu(|cpu| interrupts.map(|interrupts| cpu.take_over(interrupts)));
}
