//! Tasks: run queues, wakeups, preemption.
//!
//! Real-time tasks run by priority, first come first served; below them fair ones take turns by the
//! tick. Every CPU has a queue of its own; a task that wakes goes to the CPU it was on. If that one
//! is busy, or about to be, and the task is not bound to it, it goes to an idle one, as Linux does
//! with a real-time task that finds another one on its CPU. (Deferred expiry hangs on that: a
//! thread that every tick wakes, for nothing, pushes others off their CPU.)

use super::{Clocked, Kernel, TaskUsage, UNBORN};
use crate::engine::{self, FiberId, Machine};
use crate::irq::{self, Masked, Vector};
use crate::ps::Ps;
use crate::trace;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use tickless_core::platform::Lock;
use tickless_core::time::CpuId;

/// A task's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct TaskId(u32);

impl TaskId {
    pub(super) const NONE: TaskId = TaskId(u32::MAX);
}

/// How a task is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Class {
    /// Only when there is nothing else.
    Idle,
    /// In turns.
    Fair,
    /// Before all fair ones, and before those of a lower number.
    Fifo(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In a queue, or running.
    Ready,
    Blocked,
}

/// What the kernel knows of a task.
#[derive(Debug)]
pub(super) struct Task {
    fiber: FiberId,
    class: Class,
    bound: Option<CpuId>,
    cpu: CpuId,
    state: State,
    /// Its fiber has not been left yet.
    on_cpu: bool,
    /// A wakeup came while it was not blocked: the next block ends at once.
    woken: bool,
    since: Ps,
    /// When it was put in the queue of a CPU that idled, if its time counts from then.
    queued: Option<Ps>,
    usage: TaskUsage,
}

impl Task {
    pub(super) fn idle(cpu: CpuId, fiber: FiberId) -> Task {
        Task { bound: Some(cpu), on_cpu: true, ..Task::new(fiber, Class::Idle, cpu) }
    }

    fn new(fiber: FiberId, class: Class, cpu: CpuId) -> Task {
        Task {
            fiber,
            class,
            bound: None,
            cpu,
            state: State::Ready,
            on_cpu: false,
            woken: false,
            since: Ps::ZERO,
            queued: None,
            usage: TaskUsage::default(),
        }
    }
}

/// The tasks of one CPU that could run.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    ready: VecDeque<(Class, TaskId)>,
}

impl RunQueue {
    /// Behind its equals.
    fn push(&mut self, class: Class, task: TaskId) {
        let place = self.ready.partition_point(|(other, _)| *other >= class);
        self.ready.insert(place, (class, task));
    }

    /// Takes the first one that comes before `class`, or is its equal.
    fn pop_from(&mut self, class: Class) -> Option<TaskId> {
        let first = self.ready.front()?.0;
        if first < class {
            return None;
        }
        Some(self.ready.pop_front()?.1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
}

impl Kernel {
    /// A new task, ready to run. `bound` is the only CPU it may run on, if there is one; others
    /// begin on the CPU with its number.
    pub fn spawn(
        self: &Rc<Self>,
        machine: &mut Machine,
        class: Class,
        bound: Option<CpuId>,
        body: impl FnOnce() + 'static,
    ) -> io::Result<TaskId> {
        let count = self.tasks.borrow().len() as u16;
        let cpu = bound.unwrap_or(CpuId(count % self.cpus.len() as u16));
        let id = self.add(Task { bound, ..Task::new(UNBORN, class, cpu) });
        let kernel = Rc::clone(self);
        let fiber = machine.add(move || {
            kernel.arrive();
            body();
            kernel.leave();
        })?;
        self.tasks.borrow_mut()[id.0 as usize].fiber = fiber;
        // The machine stands still, so this costs nothing.
        self.cpus[cpu.index()].queue.lock().push(class, id);
        self.cpus[cpu.index()].must_choose.set(true);
        Ok(id)
    }

    pub(super) fn add(&self, task: Task) -> TaskId {
        let mut tasks = self.tasks.borrow_mut();
        tasks.push(task);
        TaskId(tasks.len() as u32 - 1)
    }

    /// What a task has done so far.
    pub fn usage(&self, task: TaskId) -> TaskUsage {
        self.with_task(task, |task| task.usage).unwrap_or_default()
    }

    /// How often a task was put on a CPU, all together.
    pub fn switches(&self) -> u64 {
        self.tasks.borrow().iter().map(|task| task.usage.switches).sum()
    }

    /// The task that runs on this CPU.
    pub fn current(&self) -> TaskId {
        self.cpus[engine::here().index()].current.get()
    }

    /// Waits until somebody wakes the task that calls it; at once, if somebody has since it
    /// last waited.
    pub fn block(&self) {
        let masked = Masked::new();
        let me = self.current();
        let stays = self.with_task(me, |task| {
            if !std::mem::take(&mut task.woken) {
                task.state = State::Blocked;
            }
            task.state == State::Ready
        });
        if stays != Some(true) {
            self.choose();
            self.with_task(me, |task| task.woken = false);
        }
        drop(masked);
    }

    /// Makes a task ready. It runs at once if it comes before what its CPU runs.
    pub fn wake(&self, id: TaskId) {
        let masked = Masked::new();
        engine::charge(self.costs.wake);
        let target = self.with_task(id, |task| {
            task.woken = true;
            if task.state == State::Ready {
                return None;
            }
            task.state = State::Ready;
            Some((task.bound, task.cpu, task.class, task.on_cpu))
        });
        if let Some(Some((bound, last, class, on_cpu))) = target {
            let cpu = match bound {
                Some(cpu) => cpu,
                None if on_cpu => last,
                None => self.idle_cpu_near(last),
            };
            let there = &self.cpus[cpu.index()];
            let is_idle = there.current.get() == there.idle.get();
            let counts = is_idle && self.config.clocked == Clocked::FromQueue;
            let now = engine::clock();
            self.with_task(id, |task| {
                task.cpu = cpu;
                task.queued = counts.then_some(now);
            });
            let mut queue = self.cpus[cpu.index()].queue.lock();
            queue.push(class, id);
            drop(queue);
            self.prompt(cpu, class);
        }
        drop(masked);
    }

    /// Has a CPU choose anew if a task of this class comes before what it runs.
    fn prompt(&self, cpu: CpuId, class: Class) {
        let running = self.cpus[cpu.index()].current.get();
        let before = self.with_task(running, |task| class > task.class).unwrap_or(true);
        if !before {
            return;
        }
        if cpu == engine::here() {
            self.cpus[cpu.index()].must_choose.set(true);
        } else {
            irq::send(cpu, Vector::Reschedule);
        }
    }

    fn idle_cpu_near(&self, last: CpuId) -> CpuId {
        let cpus = self.cpus.len();
        let from = (0..cpus).map(|step| (last.index() + step) % cpus);
        let mut idle = from.filter(|cpu| {
            let cpu = &self.cpus[*cpu];
            cpu.current.get() == cpu.idle.get() && !cpu.must_choose.get()
        });
        idle.next().map_or(last, |cpu| CpuId(cpu as u16))
    }

    /// On the way back from interrupts: another task, if there is one that comes first.
    pub(super) fn preempt(&self) {
        let mine = &self.cpus[engine::here().index()];
        let cpu = engine::here();
        if mine.must_choose.get() && mine.current.get() != mine.idle.get() {
            let masked = Masked::new();
            self.choose();
            drop(masked);
        } else if !mine.must_choose.get() {
            // Nothing is to be chosen. An idle CPU that has something to do chooses soon.
            let masked = Masked::new();
            self.settle(cpu);
            drop(masked);
        }
    }

    /// A tick has passed: the fair task that runs gives way to one that waits.
    pub(super) fn share_fairly(&self) {
        let mine = &self.cpus[engine::here().index()];
        let is_fair = self.with_task(mine.current.get(), |task| task.class == Class::Fair);
        if is_fair == Some(true) {
            mine.must_choose.set(true);
        }
    }

    /// Goes on with the task that comes first; with the same one, if there is no other. With
    /// interrupts disabled.
    pub(super) fn choose(&self) {
        let cpu = engine::here();
        let mine = &self.cpus[cpu.index()];
        mine.must_choose.set(false);
        let me = mine.current.get();
        let Some((state, class)) = self.with_task(me, |task| (task.state, task.class)) else {
            return;
        };
        let mut queue = mine.queue.lock();
        let lowest = if state == State::Ready { class } else { Class::Idle };
        let next = queue.pop_from(lowest);
        let next = match (next, state) {
            // Another one, and this one waits for its turn. An idle task is in no queue.
            (Some(next), State::Ready) if class > Class::Idle => {
                queue.push(class, me);
                next
            }
            (Some(next), _) => next,
            (None, State::Ready) => {
                drop(queue);
                self.settle(cpu);
                return;
            }
            (None, State::Blocked) => mine.idle.get(),
        };
        let waits = !queue.is_empty();
        drop(queue);
        if let (Some(slice), true) = (self.config.slice, waits) {
            self.start_slice(cpu, slice);
        }
        self.settle(cpu);
        if next != me {
            self.switch(me, next);
        }
    }

    fn switch(&self, me: TaskId, next: TaskId) {
        engine::charge(self.costs.switch);
        let now = engine::clock();
        let cpu = engine::here();
        self.trace_switch(me, next);
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
        self.arrive();
    }

    /// The idle task is on a CPU's track where nothing else is.
    fn trace_switch(&self, from: TaskId, to: TaskId) {
        let mine = &self.cpus[engine::here().index()];
        if from != mine.idle.get() {
            trace::end();
        }
        match to {
            to if to == mine.idle.get() => {}
            to if mine.expirer.get() == Some(to) => trace::begin("expiry thread"),
            _ => trace::begin("task"),
        }
    }

    /// A task has got a CPU.
    fn arrive(&self) {
        let now = engine::clock();
        self.with_task(self.current(), |task| {
            task.since = task.queued.take().unwrap_or(now);
            task.usage.switches += 1;
        });
    }

    /// A task is over. Its fiber stays behind, and nobody goes back to it.
    fn leave(&self) {
        let masked = Masked::new();
        loop {
            self.with_task(self.current(), |task| task.state = State::Blocked);
            self.choose();
            if engine::current().is_none() {
                break;
            }
        }
        drop(masked);
    }

    fn with_task<R>(&self, id: TaskId, f: impl FnOnce(&mut Task) -> R) -> Option<R> {
        self.tasks.borrow_mut().get_mut(id.0 as usize).map(f)
    }
}
