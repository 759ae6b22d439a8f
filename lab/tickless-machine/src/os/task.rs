//! The tasks of the simulated kernel: wakeups, preemption, switches.
//!
//! Every CPU has a queue of its own ([`queue`](super::queue)), and a woken task goes to its last
//! CPU. If that is busy, or about to be, and the task is not bound to it, the task goes to an idle
//! CPU, as in Linux. The study of deferred expiry depends on that: its expiry thread is
//! woken at every tick even if no timer has expired, and so drives other tasks away from their CPU.
//! If no CPU is idle, a fair task goes to its waker's CPU if the waker is alone there: pipes tell
//! that a waker will soon block (`wake_affine_idle` in Linux).

use super::queue::{Class, TaskId};
use super::{Clocked, Kernel, TaskUsage};
use crate::cpu;
use crate::engine::{self, FiberId, Machine};
use crate::irq::{self, Vector};
use crate::ps::Ps;
use std::io;
use std::rc::Rc;
use tickless_core::platform::Lock;
use tickless_core::time::CpuId;

/// How a task that was woken on an idle CPU entered the queue of that CPU.
#[derive(Clone, Copy, Debug)]
enum Queued {
    /// The waker itself put the task into the queue, at this time.
    At(Ps),
    /// The waker is on another socket: the interrupt that it sent put the task into the queue.
    ByInterrupt,
}

#[derive(Debug, Default)]
pub(super) struct Task {
    fiber: FiberId,
    class: Class,
    bound: Option<CpuId>,
    cpu: CpuId,
    is_blocked: bool,
    /// Whether a CPU still runs this task's fiber. If so, no other CPU can switch to the task.
    on_cpu: bool,
    /// Whether the task was woken while not blocked: its next [`Kernel::block`] returns at once.
    woken: bool,
    /// Whether the task is inside of a system call, where it is not preempted as elsewhere.
    pub(super) is_in_kernel: bool,
    since: Ps,
    queued: Option<Queued>,
    /// Whether the task is in its CPU's queue: also for a while after it has blocked.
    is_in_queue: bool,
    /// The lag with which the task left its last queue.
    lag: i64,
    usage: TaskUsage,
}

impl Task {
    pub(super) fn idle(cpu: CpuId, fiber: FiberId) -> Task {
        Task { fiber, bound: Some(cpu), cpu, on_cpu: true, ..Task::default() }
    }
}

impl Kernel {
    /// Adds a task, which is ready to run. With `bound` it runs only on that CPU. Otherwise the
    /// kernel spreads tasks over the CPUs by their numbers.
    pub fn spawn(
        self: &Rc<Self>,
        machine: &mut Machine,
        class: Class,
        bound: Option<CpuId>,
        body: impl FnOnce() + 'static,
    ) -> io::Result<TaskId> {
        let count = self.tasks.borrow().len() as u16;
        let cpu = bound.unwrap_or(CpuId(count % self.cpus.len() as u16));
        let id = self.add(Task { class, bound, cpu, is_in_queue: true, ..Task::default() });
        let kernel = Rc::clone(self);
        let fiber = machine.add(move || {
            kernel.begin_turn();
            body();
            kernel.exit();
        })?;
        self.tasks.borrow_mut()[id.0 as usize].fiber = fiber;
        // The machine does not run yet, so this lock takes no simulated time.
        self.cpus[cpu.index()].queue.lock().add(id, class, 0);
        self.cpus[cpu.index()].must_choose.set(true);
        Ok(id)
    }

    pub(super) fn add(&self, task: Task) -> TaskId {
        let mut tasks = self.tasks.borrow_mut();
        tasks.push(task);
        TaskId(tasks.len() as u32 - 1)
    }

    pub fn usage(&self, task: TaskId) -> TaskUsage {
        self.with_task(task, |task| task.usage).unwrap_or_default()
    }

    pub fn switches(&self) -> u64 {
        self.tasks.borrow().iter().map(|task| task.usage.switches).sum()
    }

    pub fn current(&self) -> TaskId {
        self.cpus[cpu::here().index()].current.get()
    }

    /// Blocks the calling task until woken. Returns at once if it was woken since it last blocked.
    pub fn block(&self) {
        let _masked = irq::mask();
        let me = self.current();
        let blocks = self.with_task(me, |task| {
            task.is_blocked |= !std::mem::take(&mut task.woken);
            task.is_blocked
        });
        if blocks != Some(false) {
            self.choose();
            self.with_task(me, |task| task.woken = false);
        }
    }

    /// Makes a task ready. It preempts the task that its CPU runs if its class (its priority) is
    /// higher, or if both are fair and it would be chosen now.
    pub fn wake(&self, id: TaskId) {
        let _masked = irq::mask();
        cpu::charge(self.costs.wake);
        let target = self.with_task(id, |task| {
            task.woken = true;
            let was_blocked = std::mem::take(&mut task.is_blocked);
            let stays = task.on_cpu || task.is_in_queue;
            let stays_on = task.bound.or(stays.then_some(task.cpu));
            was_blocked.then_some((stays_on, task.cpu, task.class, task.lag))
        });
        let Some((stays_on, last, class, lag)) = target.flatten() else { return };
        let cpu = stays_on.unwrap_or_else(|| self.cpu_for(class, last));
        let there = &self.cpus[cpu.index()];
        let is_idle = there.current.get() == there.idle.get();
        let counts = is_idle && self.config.clocked == Clocked::FromQueue;
        let [from, to] = [cpu::here(), cpu].map(|cpu| self.topology.socket(cpu));
        let queued = match from == to {
            true => Queued::At(cpu::clock()),
            false => Queued::ByInterrupt,
        };
        self.with_task(id, |task| {
            task.cpu = cpu;
            task.is_in_queue = true;
            task.queued = counts.then_some(queued);
        });
        let mut queue = there.queue.lock();
        let must_share = queue.account(cpu::clock());
        let is_new = queue.add(id, class, lag);
        let preempts = must_share || queue.preempts(id);
        let rest = queue.rest().filter(|_| is_new);
        drop(queue);
        let is_used_up = self.slice_is_shared(cpu, rest);
        // Since 7.0, a fair task is not interrupted for another one.
        let is_idle = there.current.get() == there.idle.get();
        let waits = self.config.is_since_7_1() && class == Class::Fair && !is_idle;
        match preempts || is_used_up {
            true if waits || cpu == cpu::here() => there.must_choose.set(true),
            true => irq::send(cpu, Vector::Reschedule),
            false => {}
        }
    }

    /// Chooses a CPU for a woken task: an idle one as near to its last one as possible, else the
    /// waker's if the waker is alone there, else the last one.
    fn cpu_for(&self, class: Class, last: CpuId) -> CpuId {
        let cpus = self.cpus.len();
        let from = (0..cpus).map(|step| (last.index() + step) % cpus);
        let mut idle = from.filter(|cpu| {
            let cpu = &self.cpus[*cpu];
            cpu.current.get() == cpu.idle.get() && !cpu.must_choose.get()
        });
        let here = cpu::here();
        let tasks = self.tasks.borrow();
        let are_here = tasks.iter().filter(|task| task.is_in_queue && task.cpu == here);
        match idle.next() {
            Some(idle) => CpuId(idle as u16),
            None if class == Class::Fair && are_here.count() == 1 => here,
            None => last,
        }
    }

    /// Marks the current task as inside of a system call, or as outside of any again.
    pub(super) fn mark(&self, mark: impl FnOnce(&mut Task)) {
        self.with_task(self.current(), mark);
    }

    /// Whether a task has its CPU.
    pub(super) fn runs(&self, task: TaskId) -> bool {
        self.with_task(task, |task| task.on_cpu) == Some(true)
    }

    /// Whether the current task must give its CPU away, although it is in the kernel. Up to 6.18 it
    /// does so at certain points only, where it calls this (`PREEMPT_VOLUNTARY`).
    pub(super) fn must_yield(&self) -> bool {
        let mine = &self.cpus[cpu::here().index()];
        mine.must_choose.get() && (mine.must_choose_now.get() || !self.config.is_since_7_1())
    }

    /// Gives the CPU away, if another task is chosen.
    pub(super) fn yield_cpu(&self) {
        let _masked = irq::mask();
        self.choose();
    }

    /// Called when a CPU returns from interrupts, and when a task returns from a system call.
    /// Switches if a task must preempt the current one. A task that is in the kernel goes on until
    /// it returns from there. Since 7.0 it does so only if the task that would preempt it can wait:
    /// a fair one, until the slice's timer or the second tick (`PREEMPT_LAZY`).
    pub(super) fn preempt(&self) {
        let mine = &self.cpus[cpu::here().index()];
        let cpu = cpu::here();
        let is_in_kernel = self.with_task(self.current(), |task| task.is_in_kernel) == Some(true);
        let must_choose = mine.must_choose.get() && (!is_in_kernel || mine.must_choose_now.get());
        if must_choose && mine.current.get() != mine.idle.get() {
            self.yield_cpu();
        } else if !must_choose {
            // The CPU does not choose a task now, which would program the timer device, so program
            // it here. (An idle CPU programs it in the idle loop.)
            let _masked = irq::mask();
            self.settle(cpu);
        }
    }

    /// If the current task is a fair task that has completed its request, makes the CPU choose a
    /// task again when it returns from the interrupt.
    pub(super) fn share_fairly(&self) {
        let mine = &self.cpus[cpu::here().index()];
        let is_fair = self.with_task(mine.current.get(), |task| task.class == Class::Fair);
        if is_fair == Some(true) && mine.queue.lock().account(cpu::clock()) {
            mine.must_choose.set(true);
        }
    }

    /// Switches the running CPU to the first ready task of its queue, or continues the current task
    /// if none must run before it. Called with interrupts disabled.
    pub(super) fn choose(&self) {
        let cpu = cpu::here();
        let mine = &self.cpus[cpu.index()];
        mine.must_choose.set(false);
        mine.must_choose_now.set(false);
        self.begin_choice(cpu);
        let me = mine.current.get();
        let left = |task: TaskId, lag| {
            self.with_task(task, |task| (task.is_in_queue, task.lag) = (false, lag));
        };
        let mut queue = mine.queue.lock();
        let is_blocked = self.with_task(me, |task| task.is_blocked) == Some(true);
        let rest_of_blocked = if is_blocked { queue.block(cpu::clock(), left) } else { None };
        let (next, rest_of_left) = queue.choose(cpu::clock(), left);
        let (next, rest) = (next.unwrap_or(mine.idle.get()), queue.rest());
        drop(queue);
        self.end_choice(cpu, rest_of_blocked.or(rest_of_left), rest);
        self.settle(cpu);
        if next != me {
            self.switch(me, next);
        }
    }

    /// Switches this CPU to another task. Returns when this task runs again.
    fn switch(&self, me: TaskId, next: TaskId) {
        cpu::charge(self.costs.switch);
        let now = cpu::clock();
        let cpu = cpu::here();
        self.with_task(me, |task| {
            task.usage.ran += now - task.since;
            task.on_cpu = false;
        });
        let fiber = self.with_task(next, |task| {
            task.on_cpu = true;
            task.cpu = cpu;
            task.fiber
        });
        self.cpus[cpu.index()].current.set(next);
        if let Some(fiber) = fiber {
            engine::switch_to(fiber);
        }
        self.begin_turn();
    }

    /// Sets the time from which a task's CPU time counts: now, or when the task was queued.
    fn begin_turn(&self) {
        let now = cpu::clock();
        let interrupted = self.cpus[cpu::here().index()].interrupted.get();
        self.with_task(self.current(), |task| {
            task.since = match task.queued.take() {
                Some(Queued::At(then)) => then,
                Some(Queued::ByInterrupt) => interrupted,
                None => now,
            };
            task.usage.switches += 1;
        });
    }

    /// Ends the current task: blocks it, and blocks it again whenever it is woken.
    fn exit(&self) {
        let _masked = irq::mask();
        loop {
            self.with_task(self.current(), |task| task.is_blocked = true);
            self.choose();
            if engine::current().is_none() {
                break;
            }
        }
    }

    fn with_task<R>(&self, id: TaskId, f: impl FnOnce(&mut Task) -> R) -> Option<R> {
        self.tasks.borrow_mut().get_mut(id.0 as usize).map(f)
    }
}
