//! What each CPU does with its timers, and with other CPUs.

use super::oracle::{How, Oracle, Subject};
use super::{CHECK_AT, FARTHEST, GRACE, LAST_RETURN, LATE_MAX, SAFE_UNTIL};
use crate::os::Kernel;
use crate::ps::Ps;
use crate::random::Random;
use crate::{cpu, engine, platform};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{Options, Started};
use tickless_core::time::{CpuId, Ns, Window};

/// What one CPU does with its timers.
pub(super) struct Program {
    pub(super) kernel: Rc<Kernel>,
    pub(super) oracle: Rc<Oracle>,
    pub(super) subjects: Rc<Vec<Vec<Subject>>>,
    pub(super) left: Rc<Cell<u16>>,
    pub(super) random: RefCell<Random>,
    pub(super) cpu: CpuId,
    /// How many CPUs there are.
    pub(super) cpus: u16,
    /// Do bases go offline in this history?
    pub(super) bases_go: bool,
}

impl Program {
    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().below(end)
    }

    pub(super) fn run(&self) {
        while engine::clock() < Ps::from_ns(SAFE_UNTIL) {
            // Whoever is inside of the timer core is not switched off there.
            self.kernel.keep_on(|| self.step());
            self.oracle.check_locks();
            cpu::work(Ps(1_000 * self.below(400_000)));
        }
        self.see_that_everything_fires();
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            engine::stop();
        }
    }

    /// The liveness phase: all bases are back, nothing is asked for, everything fires.
    fn see_that_everything_fires(&self) {
        if self.cpu.0 == 0 {
            (0..self.cpus).for_each(|cpu| self.bring_back(CpuId(cpu)));
        }
        let over = engine::clock().to_ns().after(FARTHEST).after(LATE_MAX).max(CHECK_AT);
        let alarm = self.kernel.alarm();
        while engine::clock() < Ps::from_ns(over) {
            // CPU 0 stays awake: when all sleep, nobody looks after anybody. Others sleep once
            // what was lost before has been noticed.
            if self.cpu.0 == 0 || engine::clock() < Ps::from_ns(SAFE_UNTIL.after(GRACE)) {
                cpu::wait_until(engine::clock() + Ps::from_ns(ROUND));
            } else {
                self.kernel.sleep_until(&alarm, platform::now().after(ROUND));
            }
            self.kernel.keep_on(|| self.look_around());
        }
        let now = platform::cycle_counter();
        for (owner, subjects) in self.subjects.iter().enumerate() {
            if let Some(due) = subjects.iter().find_map(|subject| subject.fact.overdue(now)) {
                self.oracle.fail(format!("due at {due:?} by CPU {owner} and never fired"));
            }
        }
        self.kernel.keep_on(|| self.check());
        self.oracle.check_locks();
    }

    /// Looks after the CPU itself and the next few.
    fn look_around(&self) {
        const FAR: u16 = 8;
        let far = if self.cpu.0 == 0 { self.cpus } else { self.cpus.min(FAR) };
        for step in 0..far {
            let cpu = CpuId((self.cpu.0 + step) % self.cpus);
            self.kernel.bases().look_after(cpu, GRACE);
        }
    }

    fn step(&self) {
        let mine = &self.subjects[self.cpu.index()];
        let subject = &mine[self.below(mine.len() as u64) as usize];
        match self.below(80) {
            0..40 => self.start(subject),
            40..52 => self.cancel(subject, How::Once),
            52..60 => self.cancel(subject, How::UnlessRunning),
            60..72 => self.cancel(subject, How::AndWait),
            72..76 if self.bases_go => self.take_a_base_off_or_on(),
            76 => self.switch_a_cpu_off(),
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
        self.oracle.has_armed();
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
                self.oracle.has_cancelled();
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
        if self.below(2) == 1 {
            self.bring_back(cpu);
        } else if !self.kernel.is_off(cpu) {
            let gone = self.kernel.plug(|| self.kernel.bases().offline(cpu));
            // The last base cannot go.
            if let Some(Ok(_)) = gone {
                self.oracle.faults.borrow_mut().offline += 1;
            }
        }
    }

    /// A base whose CPU is off comes back with that.
    fn bring_back(&self, cpu: CpuId) {
        self.kernel.plug(|| {
            if !self.kernel.is_off(cpu) {
                let _ = self.kernel.bases().online(cpu);
            }
        });
    }

    /// Mostly for some milliseconds, now and then for the rest of the history. CPU 0 stays.
    fn switch_a_cpu_off(&self) {
        const SHORT_MAX: u64 = 6_000_000_000;
        let any = CpuId(1 + self.below(u64::from(self.cpus) - 1) as u16);
        // Rather one that is in a callback.
        let all = self.subjects.iter().flatten().map(|subject| &subject.fact);
        let mut busy = all.filter(|fact| fact.running.get() && fact.ran_on.get() > 0);
        let cpu = busy.next().map_or(any, |fact| CpuId(fact.ran_on.get()));
        let until = match self.below(4) {
            0 => Ps::from_ns(LAST_RETURN),
            _ => engine::clock() + Ps(self.below(SHORT_MAX)),
        };
        self.kernel.request_power_off(cpu, until);
    }
}

/// How long programs sleep at a time in the liveness phase.
const ROUND: Ns = Ns::from_ms(2);
