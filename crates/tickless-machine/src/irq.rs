//! Interrupts: what is under way to a CPU, and how it is delivered.
//!
//! A handler runs on the stack of what it interrupts, with interrupts disabled, between two of
//! the program's priced steps. It costs its entry and its exit; one that another CPU sends costs
//! the sender and is under way for as long as the distance takes.

use crate::ps::Ps;
use crate::topology::Distance;
use crate::world::{World, act, with};
use tickless_core::time::{CpuId, Ns};

/// What an interrupt is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Vector {
    /// This CPU's event device.
    Timer,
    /// Another CPU wants this one to look at its base.
    Look,
    /// Another CPU wants this one to choose a task anew.
    Reschedule,
    /// Somebody wants this one to switch itself off for a while.
    Stop,
}

impl Vector {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Vector::Timer => "timer interrupt",
            Vector::Look => "look interrupt",
            Vector::Reschedule => "reschedule interrupt",
            Vector::Stop => "stop interrupt",
        }
    }
}

/// What is under way to one CPU.
#[derive(Debug)]
pub(crate) struct Inbox {
    timer: Ps,
    /// Latest first.
    sent: Vec<(Ps, Vector)>,
    next: Ps,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { timer: Ps::NEVER, sent: Vec::new(), next: Ps::NEVER }
    }
}

impl Inbox {
    /// When the next one comes.
    #[inline]
    pub(crate) fn next(&self) -> Ps {
        self.next
    }

    /// When the event device comes.
    pub(crate) fn timer(&self) -> Ps {
        self.timer
    }

    pub(crate) fn program(&mut self, at: Ps) {
        self.timer = at;
        self.renew();
    }

    /// Forgets what was programmed, and loses what was sent.
    pub(crate) fn clear(&mut self) {
        *self = Inbox::default();
    }

    fn send(&mut self, at: Ps, vector: Vector) {
        let place = self.sent.partition_point(|sent| sent.0 > at);
        self.sent.insert(place, (at, vector));
        self.renew();
    }

    /// Takes the first one out.
    fn take(&mut self) -> Option<(Ps, Vector)> {
        let taken = match self.sent.last() {
            Some(&(at, _)) if at < self.timer => self.sent.pop(),
            _ if self.timer == Ps::NEVER => None,
            _ => Some((std::mem::replace(&mut self.timer, Ps::NEVER), Vector::Timer)),
        };
        self.renew();
        taken
    }

    fn renew(&mut self) {
        self.next = self.sent.last().map_or(self.timer, |sent| sent.0.min(self.timer));
    }
}

impl World {
    fn begin_interrupt(&mut self) -> Option<(Vector, crate::world::Handler)> {
        let cpu = self.running?;
        let handler = self.handler.clone();
        let state = &mut self.cpus[cpu];
        let (at, vector) = state.inbox.take()?;
        state.clock = state.clock.max(at) + self.costs.irq.entry;
        state.masked += 1;
        state.handlers += 1;
        self.inside += 1;
        state.count_interrupt();
        let now = state.clock;
        self.count(cpu);
        if let Some(trace) = &mut self.trace {
            trace.begin(now, cpu, vector.name());
        }
        // A machine without a handler loses them.
        match handler {
            Some(handler) => Some((vector, handler)),
            None => {
                self.end_interrupt();
                None
            }
        }
    }

    fn end_interrupt(&mut self) {
        let Some(cpu) = self.running else { return };
        let exit = self.costs.irq.exit;
        self.inside = self.inside.saturating_sub(1);
        let state = &mut self.cpus[cpu];
        state.clock += exit;
        state.handlers = state.handlers.saturating_sub(1);
        state.masked = state.masked.saturating_sub(1);
        let now = state.clock;
        if let Some(trace) = &mut self.trace {
            trace.end(now, cpu);
        }
    }

    fn send(&mut self, from: usize, to: CpuId, vector: Vector) {
        self.count(from);
        let distance = self.costs.topology.between(CpuId(from as u16), to);
        let costs = self.costs.irq;
        let way = match distance {
            Distance::Core | Distance::Socket => costs.near,
            Distance::Near | Distance::Far => costs.far,
        };
        let now = self.cpus[from].clock.to_ns();
        let late = match &mut self.faults {
            Some(faults) => faults.interrupt(to, vector, now),
            None => Some(Ns::ZERO),
        };
        let state = &mut self.cpus[from];
        state.clock += costs.send;
        let at = state.clock + way;
        let (Some(late), Some(target)) = (late, self.cpus.get_mut(to.index())) else { return };
        target.inbox.send(at + Ps::from_ns(late), vector);
        if to.index() != from {
            self.reschedule(to.index());
        }
    }
}

/// Delivers every interrupt that is due on the CPU that runs, and goes back to its program.
pub(crate) fn deliver() {
    let mut delivered = false;
    loop {
        let due = with(|world| {
            let cpu = world.running?;
            if world.cpus[cpu].is_interrupted() { world.begin_interrupt() } else { None }
        });
        let Some((vector, handler)) = due.flatten() else { break };
        handler(vector);
        with(World::end_interrupt);
        delivered = true;
    }
    if delivered && let Some(hook) = with(|world| world.on_return.clone()).flatten() {
        hook();
    }
}

/// Sends an interrupt to a CPU, this one included. A CPU that does not exist gets none.
pub fn send(to: CpuId, vector: Vector) {
    act(|_, _| Ps::ZERO, |world, cpu| world.send(cpu, to, vector));
}

/// Interrupts are disabled on this CPU for as long as it lives. May be nested.
#[derive(Debug)]
pub struct Masked(());

impl Masked {
    /// Disables them, until it is dropped: what came in meanwhile is delivered then.
    pub fn new() -> Masked {
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.masked += 1;
            }
        });
        Masked(())
    }
}

impl Default for Masked {
    fn default() -> Masked {
        Masked::new()
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.masked = cpu.masked.saturating_sub(1);
            }
        });
        deliver();
    }
}

/// Enables interrupts for as long as it takes to deliver those that are due; for a
/// caller that has disabled them once.
pub(crate) fn enable_briefly() {
    let masked = with(|world| world.cpu().map(|cpu| std::mem::take(&mut cpu.masked))).flatten();
    deliver();
    with(|world| {
        if let (Some(cpu), Some(masked)) = (world.cpu(), masked) {
            cpu.masked = masked;
        }
    });
}
