//! The engine: fibers in virtual time, always the CPU with the smallest clock.
//!
//! Each simulated CPU runs one fiber at a time, and the code on it really runs: it loads words,
//! takes locks, calls the library. Every priced step goes through here: the CPU waits until no
//! other CPU is behind it, performs the step, and its clock advances by the price.
//!
//! # Guarantees
//!
//! - Deterministic: smallest clock first, ties by CPU number. The same program and seed give
//!   the same run; [`Machine::digest`] distinguishes runs.
//! - Sequentially consistent: accesses happen one after the other in the order in which they
//!   are served. The machine cannot show errors in memory orderings; the model checkers do.
//!
//! # Ground rules
//!
//! - A hit may run ahead of the other CPUs by less than the fastest remote access, because no
//!   access that follows could have changed its result.
//! - A waiting loop ([`Platform::relax`]) does not run: its CPU is parked on the lines that the
//!   loop has read until one of them is written. Loops that read more than [`WATCHED_MAX`] lines
//!   run.
//! - The machine's state is never borrowed across a suspension; interrupt handlers run on the
//!   stack of the program that they interrupt, as on a real CPU.
//!
//! [`Platform::relax`]: tickless_core::platform::Platform::relax

use crate::cost::Costs;
use crate::fault::Faults;
use crate::fiber::{self, Fiber, Resumed};
use crate::machine_state::{MachineState, install, uninstall, with, with_cpu};
use crate::ps::Ps;
use crate::state::cpu::Usage;
use crate::state::inbox::Vector;
use crate::state::timeline::Trace;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use tickless_core::time::{CpuId, Ns};

pub use crate::fiber::FiberId;
pub use crate::machine_state::Ended;
pub use crate::state::cpu::WATCHED_MAX;

/// A simulated machine.
pub struct Machine {
    /// `None` only during a run.
    state: Option<Box<MachineState>>,
    fibers: Vec<Option<Fiber>>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("fibers", &self.fibers.len()).finish_non_exhaustive()
    }
}

impl Machine {
    /// Returns a machine whose CPUs are all off.
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

    /// Sets a hook that runs when a CPU has handled its interrupts and returns to its program, with
    /// interrupts enabled. A kernel switches tasks there.
    pub fn on_return(&mut self, hook: impl Fn() + 'static) {
        self.change(|state| state.on_return = Some(Rc::new(hook)));
    }

    /// Sets a plan of faults.
    pub fn inject(&mut self, faults: impl Faults + 'static) {
        self.change(|state| state.faults = Some(Box::new(faults)));
    }

    /// Records the run from now on.
    pub fn record(&mut self) {
        self.change(|state| state.trace = Some(Trace::default()));
    }

    /// Returns the recorded run, if [`record`](Self::record) was called.
    pub fn trace(&self) -> Option<&Trace> {
        self.state.as_ref()?.trace.as_ref()
    }

    /// Switches a CPU on to run `body`. The CPU is off when `body` has returned.
    ///
    /// Fails when there is no memory for a stack. A CPU that does not exist is ignored.
    pub fn start(&mut self, cpu: CpuId, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        let id = self.add(body)?;
        self.change(|state| state.switch_on(cpu, id));
        Ok(id)
    }

    /// Adds a fiber that runs `body` when a CPU switches to it. Fails when there is no memory for
    /// a stack.
    pub fn add(&mut self, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        self.fibers.push(Some(Fiber::new(body)?));
        Ok(FiberId(self.fibers.len() as u32 - 1))
    }

    /// Runs until no CPU has anything to do before `until`, or a program stops the machine.
    ///
    /// A panic on a fiber ends all fibers and is propagated. Programs that have not ended remain
    /// suspended, and the next run continues them. They may hold locks: inspect what they share
    /// before the run or after [`finish`](Self::finish).
    pub fn run(&mut self, until: Ns) -> Ended {
        match self.try_run(until) {
            Ok(ended) => ended,
            Err(panic) => {
                self.finish();
                resume_unwind(panic)
            }
        }
    }

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

    fn turn(&mut self, until: Ps) -> Ended {
        loop {
            let fiber = match with(|machine| machine.choose_next(until)) {
                Some(Ok(fiber)) => fiber,
                Some(Err(ended)) => return ended,
                None => return Ended::Quiet,
            };
            let resumed = match self.fibers.get_mut(fiber.0 as usize) {
                Some(Some(fiber)) => fiber.resume(),
                _ => Resumed::Ended,
            };
            fiber::clear_yielder();
            with(|machine| machine.suspended(fiber, resumed));
            if resumed == Resumed::Ended
                && let Some(place) = self.fibers.get_mut(fiber.0 as usize)
            {
                *place = None;
            }
        }
    }

    /// Ends all programs. Programs that hold a lock or wait for one, and interrupt handlers, first
    /// run until they have released it or returned; then all stacks are unwound. A program that
    /// should end by itself must do so in an earlier run, when [`is_ending`] returns true.
    pub fn finish(&mut self) {
        self.change(MachineState::drain);
        while self.inside() > 0 {
            // The first panic has been propagated; ignore further ones.
            if let Ok(Ended::Quiet) = self.try_run(Ns::NEVER) {
                break;
            }
        }
        if self.inside() > 0 {
            // They wait for each other. Unwinding one would have to take the other's lock.
            self.fibers.drain(..).for_each(std::mem::forget);
        }
        self.fibers.clear();
    }

    fn inside(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.inside)
    }

    /// The number of priced events so far.
    pub fn events(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.events)
    }

    /// A hash over the CPU and the time of every event. Equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.digest)
    }

    /// The statistics of a CPU so far.
    pub fn usage(&self, cpu: CpuId) -> Option<Usage> {
        Some(self.state.as_ref()?.cpus.get(cpu.index())?.usage())
    }

    /// The energy used so far, in joules: that of the cores by their load, and that of the CPUs by
    /// their idle states.
    pub fn joules(&mut self) -> f64 {
        self.change(MachineState::joules).unwrap_or(0.0)
    }

    /// The machine's prices; `None` during a run.
    pub fn costs(&self) -> Option<&Costs> {
        self.state.as_ref().map(|state| &state.costs)
    }
}

/// Requests that all programs end; see [`is_ending`].
pub fn end() {
    with(|machine| machine.ending = true);
}

/// Returns whether [`end`] was called. Programs with an endless loop must check it. True outside a
/// machine.
pub fn is_ending() -> bool {
    with(|machine| machine.ending).unwrap_or(true)
}

/// Empties all caches, free of charge.
pub fn flush_caches() {
    with(|machine| machine.lines.flush_all());
}

/// Advances the running CPU's clock for private work, which neither interrupts nor siblings
/// disturb.
pub fn charge(amount: Ps) {
    with_cpu(|cpu| cpu.clock += amount);
}

/// The price of the private work of a critical section of the timer core; zero outside a machine.
pub fn section() -> Ps {
    with(|machine| machine.costs.section).unwrap_or(Ps::ZERO)
}

/// The current time of the running CPU; zero outside a CPU.
pub fn clock() -> Ps {
    with_cpu(|cpu| cpu.clock).unwrap_or(Ps::ZERO)
}

/// The time for which the running CPU has waited for others so far; zero outside a CPU.
pub fn waited() -> crate::cpu::Waited {
    with_cpu(|cpu| cpu.waited).unwrap_or_default()
}

/// The running CPU; CPU 0 outside a machine.
pub fn here() -> CpuId {
    CpuId(with(|machine| machine.running).flatten().unwrap_or(0) as u16)
}

/// Ends the run when the running CPU is suspended next.
pub fn stop() {
    with(|machine| machine.stopping = true);
}

/// The fiber of the running CPU.
pub fn current() -> Option<FiberId> {
    with_cpu(|cpu| cpu.fiber)
}

/// Switches the running CPU to another fiber. Returns when a CPU switches back to this one, with
/// the same interrupts disabled as before.
pub fn switch_to(fiber: FiberId) {
    let interrupts = with_cpu(|cpu| cpu.hand_over(fiber));
    fiber::suspend();
    with_cpu(|cpu| interrupts.map(|interrupts| cpu.take_over(interrupts)));
}
