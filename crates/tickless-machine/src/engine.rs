//! The engine: fibers in virtual time, always the CPU with the smallest clock.
//!
//! Each simulated CPU runs one fiber at a time, and code on it runs for real: it loads words,
//! takes locks, calls the library. Whatever has a price goes through here: the CPU waits until
//! no other one is behind it, is told what the access costs, and its clock moves on.
//!
//! # Guarantees
//!
//! - Deterministic: smallest clock first, ties by CPU number; the same program and seed give
//!   the same run, and [`Machine::digest`] tells two runs apart.
//! - Sequentially consistent: accesses happen one after the other in the order in which they
//!   are served. It says nothing about memory orderings; those belong to the model checkers.
//!
//! # Ground rules
//!
//! - A hit runs ahead of the others by less than the fastest remote access: nothing that is
//!   still to come could have changed it.
//! - A waiting loop ([`Platform::relax`]) does not run at all: its CPU is parked on the lines
//!   that the loop has read until one of them is written. Loops that read more than
//!   [`WATCHED_MAX`] lines run.
//! - The world is lent to nobody across a suspension; interrupt handlers run on the stack of
//!   the program that they interrupt, as on a real CPU.
//!
//! [`Platform::relax`]: tickless_core::platform::Platform::relax

use crate::cost::Costs;
use crate::fault::Faults;
use crate::fiber::{self, Fiber, Resumed};
use crate::ps::Ps;
use crate::state::cpu::Usage;
use crate::state::inbox::Vector;
use crate::state::timeline::Trace;
use crate::world::{World, install, uninstall, with};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use tickless_core::time::{CpuId, Ns};

pub use crate::fiber::FiberId;
pub use crate::state::cpu::WATCHED_MAX;
pub use crate::world::Ended;

/// A simulated machine.
pub struct Machine {
    /// `None` only while it runs.
    world: Option<Box<World>>,
    fibers: Vec<Option<Fiber>>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("fibers", &self.fibers.len()).finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine whose CPUs are all off.
    pub fn new(costs: Costs) -> Machine {
        Machine { world: Some(Box::new(World::new(costs))), fibers: Vec::new() }
    }

    /// What interrupts call, on whichever CPU they reach, with interrupts off there.
    pub fn on_interrupt(&mut self, handler: impl Fn(Vector) + 'static) {
        if let Some(world) = &mut self.world {
            world.handler = Some(Rc::new(handler));
        }
    }

    /// What a CPU does when it is through with interrupts and goes back to its program, with
    /// interrupts enabled: a kernel looks there whether another task should run.
    pub fn on_return(&mut self, hook: impl Fn() + 'static) {
        if let Some(world) = &mut self.world {
            world.on_return = Some(Rc::new(hook));
        }
    }

    /// Makes interrupts late, lost or slow.
    pub fn inject(&mut self, faults: impl Faults + 'static) {
        if let Some(world) = &mut self.world {
            world.faults = Some(Box::new(faults));
        }
    }

    /// Keeps a record of what happens from now on.
    pub fn record(&mut self) {
        if let Some(world) = &mut self.world {
            world.trace = Some(Trace::default());
        }
    }

    /// What was recorded, if [`record`](Self::record) was called.
    pub fn trace(&self) -> Option<&Trace> {
        self.world.as_ref()?.trace.as_ref()
    }

    /// Switches a CPU on, to run `body`; when that returns, the CPU is off.
    ///
    /// Fails when there is no memory for a stack. A CPU that does not exist stays away.
    pub fn start(&mut self, cpu: CpuId, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        let id = self.add(body)?;
        if let Some(world) = &mut self.world {
            world.switch_on(cpu, id);
        }
        Ok(id)
    }

    /// A fiber that will run `body` when a CPU switches to it. Fails when there is no memory for
    /// a stack.
    pub fn add(&mut self, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        self.fibers.push(Some(Fiber::new(body)?));
        let id = FiberId(self.fibers.len() as u32 - 1);
        if let Some(world) = &mut self.world {
            world.fibers = self.fibers.len() as u32;
        }
        Ok(id)
    }

    /// Runs until no CPU has anything to do before `until`, or a program stops the machine.
    ///
    /// A panic on a fiber ends all fibers and comes out here. Programs that are still under way
    /// stay where they are and go on in the next run; they may hold locks, so look at what they
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

    fn try_run(&mut self, until: Ns) -> std::thread::Result<Ended> {
        let Some(mut world) = self.world.take() else { return Ok(Ended::Quiet) };
        world.stopping = false;
        install(world);
        let ended = catch_unwind(AssertUnwindSafe(|| self.turn(Ps::from_ns(until))));
        fiber::forget_way_out();
        self.world = uninstall();
        if ended.is_err()
            && let Some(world) = &mut self.world
            && let Some(cpu) = world.running.take()
        {
            world.switch_off(cpu);
            world.order.set(cpu, Ps::NEVER);
        }
        ended
    }

    fn turn(&mut self, until: Ps) -> Ended {
        loop {
            let next = with(|world| {
                if !world.spawned.is_empty() {
                    self.fibers.extend(world.spawned.drain(..).map(Some));
                }
                world.next(until)
            });
            let fiber = match next {
                Some(Ok(fiber)) => fiber,
                Some(Err(ended)) => return ended,
                None => return Ended::Quiet,
            };
            let resumed = match self.fibers.get_mut(fiber.0 as usize) {
                Some(Some(fiber)) => fiber.resume(),
                _ => Resumed::Ended,
            };
            fiber::forget_way_out();
            with(|world| world.back(fiber, resumed));
            if resumed == Resumed::Ended
                && let Some(place) = self.fibers.get_mut(fiber.0 as usize)
            {
                *place = None;
            }
        }
    }

    /// Ends all programs that are still under way. Interrupt handlers come to their end, and so
    /// does who holds a lock or waits for one; then all stacks are unwound. A program that
    /// should come to an end of its own does so when [`is_ending`] says so, in a run before.
    pub fn finish(&mut self) {
        if let Some(world) = &mut self.world {
            world.drain();
        }
        while self.inside() > 0 {
            // A second panic says no more than the first.
            if let Ok(Ended::Quiet) = self.try_run(Ns::NEVER) {
                break;
            }
        }
        if self.inside() > 0 {
            // They wait for each other. Unwinding one would have to take the other's lock.
            self.fibers.drain(..).for_each(std::mem::forget);
        }
        self.fibers.clear();
        if let Some(world) = &mut self.world {
            world.spawned.clear();
        }
    }

    fn inside(&self) -> u32 {
        self.world.as_ref().map_or(0, |world| world.inside)
    }

    /// How many priced events there were.
    pub fn events(&self) -> u64 {
        self.world.as_ref().map_or(0, |world| world.events)
    }

    /// A hash over every event's CPU and time. Equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.world.as_ref().map_or(0, |world| world.digest)
    }

    /// What a CPU did so far.
    pub fn usage(&self, cpu: CpuId) -> Option<Usage> {
        Some(self.world.as_ref()?.cpus.get(cpu.index())?.usage())
    }

    /// What it has used so far, in joules: its cores by what they got done, its CPUs by the idle
    /// states that they were in.
    pub fn joules(&mut self) -> f64 {
        self.world.as_mut().map_or(0.0, |world| world.joules())
    }

    /// The prices it was made with.
    pub fn costs(&self) -> Option<&Costs> {
        self.world.as_ref().map(|world| &world.costs)
    }
}

/// Asks all programs to come to an end; see [`is_ending`].
pub fn end() {
    with(|world| world.ending = true);
}

/// Has [`end`] been called? Programs that would go on for ever ask now and then. True outside
/// of a machine.
pub fn is_ending() -> bool {
    with(|world| world.ending).unwrap_or(true)
}

/// Empties all caches; free of charge.
pub fn flush_caches() {
    with(|world| world.lines.flush_all());
}

/// Private work that neither interrupts nor siblings disturb: `amount` passes.
pub fn charge(amount: Ps) {
    with(|world| {
        if let Some(cpu) = world.cpu() {
            cpu.clock += amount;
        }
    });
}

/// What private work a critical section of the timer core is charged for; nothing outside.
pub fn section() -> Ps {
    with(|world| world.costs.section).unwrap_or(Ps::ZERO)
}

/// The present on the CPU that runs; zero outside.
pub fn clock() -> Ps {
    with(|world| world.cpu().map(|cpu| cpu.clock)).flatten().unwrap_or(Ps::ZERO)
}

/// How long the CPU that runs has waited for others so far; nothing outside.
pub fn waited() -> crate::cpu::Waited {
    with(|world| world.cpu().map(|cpu| cpu.waited)).flatten().unwrap_or_default()
}

/// The CPU that runs; CPU 0 outside.
pub fn here() -> CpuId {
    CpuId(with(|world| world.running).flatten().unwrap_or(0) as u16)
}

/// Ends the run once the CPU that runs is suspended next.
pub fn stop() {
    with(|world| world.stopping = true);
}

/// A fiber that will run `body` when a CPU switches to it. Fails when there is no memory for a
/// stack, and outside of a machine.
pub fn spawn(body: impl FnOnce() + 'static) -> io::Result<FiberId> {
    let fiber = Fiber::new(body)?;
    with(|world| {
        let id = FiberId(world.fibers);
        world.fibers += 1;
        world.spawned.push(fiber);
        id
    })
    .ok_or_else(|| io::Error::other("no machine runs on this thread"))
}

/// The fiber that the CPU that runs is on.
pub fn current() -> Option<FiberId> {
    with(|world| world.cpu().map(|cpu| cpu.fiber)).flatten()
}

/// Leaves this fiber and goes on with another one on the same CPU. Comes back when some CPU
/// switches to this one; what it had disabled stays disabled.
pub fn switch_to(fiber: FiberId) {
    let mine = with(|world| world.cpu().map(|cpu| cpu.hand_over(fiber))).flatten();
    fiber::suspend();
    with(|world| {
        if let (Some(cpu), Some(mine)) = (world.cpu(), mine) {
            cpu.take_over(mine);
        }
    });
}
