//! The program that each CPU runs in a random test: it arms and cancels its timers, switches CPUs
//! off, and takes bases (each holds the armed timers of one CPU) offline and online.

use super::history::{CHECK_AT, FARTHEST, GRACE, LAST_RETURN, LATE_MAX, SAFE_UNTIL};
use super::oracle::{CancelKind, Oracle, TestTimer};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{Options, Started};
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::os::Kernel;
use tickless_machine::ps::Ps;
use tickless_machine::random::Random;
use tickless_machine::{cpu, engine, platform};

pub(super) struct Program {
    pub(super) kernel: Rc<Kernel>,
    pub(super) oracle: Rc<Oracle>,
    pub(super) timers: Rc<Vec<Vec<TestTimer>>>,
    pub(super) left: Rc<Cell<u16>>,
    pub(super) random: RefCell<Random>,
    pub(super) cpu: CpuId,
    pub(super) cpus: u16,
    pub(super) bases_go_offline: bool,
}

impl Program {
    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().below(end)
    }

    pub(super) fn run(&self) {
        while cpu::clock() < Ps::from_ns(SAFE_UNTIL) {
            // The CPU must not be switched off in a call of the timer code, which may hold a lock.
            self.kernel.keep_on(|| self.step());
            self.oracle.check_locks();
            cpu::work(Ps(1_000 * self.below(400_000)));
        }
        self.check_liveness();
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            engine::stop();
        }
    }

    /// The liveness phase: brings all bases online and arms no further timer. Checks that every
    /// timer that is still armed fires in time.
    fn check_liveness(&self) {
        if self.cpu.0 == 0 {
            (0..self.cpus).for_each(|cpu| self.bring_back(CpuId(cpu)));
        }
        let behind_max = self.oracle.behind_max();
        let end = cpu::clock().to_ns().after(FARTHEST).after(LATE_MAX).max(CHECK_AT);
        let end = end.after(behind_max);
        let alarm = self.kernel.alarm();
        while cpu::clock() < Ps::from_ns(end) {
            // CPU 0 never sleeps, because a sleeping CPU cannot detect that another CPU's timer
            // interrupt was lost. The other CPUs sleep as soon as the interrupts that were lost in
            // the safety phase must have been detected.
            if self.cpu.0 == 0 || cpu::clock() < Ps::from_ns(SAFE_UNTIL.after(GRACE)) {
                cpu::wait_until(cpu::clock() + Ps::from_ns(ROUND));
            } else {
                self.kernel.sleep_until(&alarm, platform::now().after(ROUND));
            }
            self.kernel.keep_on(|| self.check_other_bases());
        }
        let now = platform::cycle_counter();
        for (owner, timers) in self.timers.iter().enumerate() {
            if let Some(due) = timers.iter().find_map(|timer| timer.record.overdue(now, behind_max))
            {
                self.oracle.fail(format!("due at {due:?} by CPU {owner} and never fired"));
            }
        }
        self.kernel.keep_on(|| self.check());
        self.oracle.check_locks();
    }

    /// Checks whether this CPU or one of the next few lost a timer interrupt. CPU 0 checks all.
    fn check_other_bases(&self) {
        const FAR: u16 = 8;
        let far = if self.cpu.0 == 0 { self.cpus } else { self.cpus.min(FAR) };
        for step in 0..far {
            let cpu = CpuId((self.cpu.0 + step) % self.cpus);
            self.kernel.bases().recover_lost_event(cpu, GRACE);
        }
    }

    fn step(&self) {
        let mine = &self.timers[self.cpu.index()];
        let timer = &mine[self.below(mine.len() as u64) as usize];
        match self.below(80) {
            0..40 => self.start(timer),
            40..52 => self.cancel(timer, CancelKind::Once),
            52..60 => self.cancel(timer, CancelKind::UnlessRunning),
            60..72 => self.cancel(timer, CancelKind::AndWait),
            72..76 if self.bases_go_offline => self.plug_a_base(),
            76 => self.switch_a_cpu_off(),
            _ => self.check(),
        }
    }

    fn start(&self, timer: &TestTimer) {
        let (before, now) = (platform::cycle_counter(), platform::now());
        // The time that a suspend counted has not passed. H5: what is armed now is not late.
        let latest = platform::cycle_counter().after(self.oracle.ahead_max());
        let earliest = Ns(before.0.saturating_sub(self.oracle.behind_max().0));
        if !(earliest..=latest).contains(&now) {
            self.oracle.fail(format!("the clock shows {now:?} at {before:?}"));
        }
        let soft = now.after(Ns(self.below(FARTHEST.0)));
        let window = Window::new(soft, soft.after(Ns(self.below(100_000))));
        let pinned = (self.below(3) == 0).then(|| CpuId(self.below(self.cpus.into()) as u16));
        let record = &timer.record;
        let mine = record.armings.get() + 1;
        record.armings.set(mine);
        // Add the arming before the call, because the timer may fire before the call returns.
        record.due.borrow_mut().push((mine, soft));
        let started = timer.timer.start(window, now, Options { pinned, ..Options::default() });
        self.oracle.history.borrow_mut().armed += 1;
        match started {
            None => self.oracle.fail("an arming was refused".to_string()),
            // The timer was not pending before this arming: the previous arming has fired, or its
            // callback is about to report that.
            Some(Started::Idle) => {}
            Some(_) => {
                // The new arming has replaced the previous one, so remove the entry of the previous
                // one. If that is missing, the new arming has already fired. Both armings were due
                // then, so its callback has removed the older entry: remove the newer one.
                let mut due = record.due.borrow_mut();
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

    fn cancel(&self, timer: &TestTimer, how: CancelKind) {
        let found = timer.timer.cancel(how);
        let record = &timer.record;
        let mut due = record.due.borrow_mut();
        match found {
            Cancel::Pending if due.len() != 1 => {
                self.oracle.fail(format!("cancelled one arming of {due:?}"));
            }
            Cancel::Pending => {
                self.oracle.history.borrow_mut().cancelled += 1;
                due.clear();
            }
            Cancel::Idle if !due.is_empty() => {
                self.oracle.fail(format!("the cancel returned idle, but {due:?} has not fired"));
            }
            Cancel::Running if how == CancelKind::AndWait => due.clear(),
            // A callback of this timer is running. The cancel has removed the later armings. The
            // arming that has fired stays in the list until its callback has called `fire`.
            Cancel::Running if how == CancelKind::Once => {
                due.truncate(usize::from(!record.running.get()));
            }
            Cancel::Idle | Cancel::Running => {}
        }
        if how == CancelKind::AndWait && record.running.get() {
            self.oracle.fail("cancelled, waited, and the callback runs".to_string());
        }
    }

    fn check(&self) {
        let cpu = CpuId(self.below(self.cpus.into()) as u16);
        if let Err(fault) = self.kernel.bases().check(cpu) {
            self.oracle.fail(format!("{cpu:?}: {fault}"));
        }
    }

    fn plug_a_base(&self) {
        let cpu = CpuId(self.below(self.cpus.into()) as u16);
        if self.below(2) == 1 {
            self.bring_back(cpu);
        } else if !self.kernel.is_off(cpu) {
            let plugged = self.kernel.plug(|| self.kernel.bases().offline(cpu));
            // Taking a base offline fails if no other base is online. Count only successes.
            if let Some(Ok(_)) = plugged {
                self.oracle.history.borrow_mut().faults.offline += 1;
            }
        }
    }

    /// Takes a CPU's base online. Does nothing if the CPU is off, because a CPU takes its own base
    /// online when it is switched on.
    fn bring_back(&self, cpu: CpuId) {
        self.kernel.plug(|| {
            if !self.kernel.is_off(cpu) {
                let _ = self.kernel.bases().online(cpu);
            }
        });
    }

    fn switch_a_cpu_off(&self) {
        const SHORT_MAX: u64 = 6_000_000_000;
        let any = CpuId(1 + self.below(u64::from(self.cpus) - 1) as u16);
        // Prefer a CPU that is in a callback: switching it off there is the hardest case.
        let all = self.timers.iter().flatten().map(|timer| &timer.record);
        let mut busy = all.filter(|record| record.running.get() && record.ran_on.get() > 0);
        let cpu = busy.next().map_or(any, |record| CpuId(record.ran_on.get()));
        let until = match self.below(4) {
            0 => Ps::from_ns(LAST_RETURN),
            _ => cpu::clock() + Ps(self.below(SHORT_MAX)),
        };
        self.kernel.request_power_off(cpu, until);
    }
}

const ROUND: Ns = Ns::from_ms(2);
