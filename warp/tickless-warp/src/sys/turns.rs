//! Keeps a traced thread on the tracer's CPU while both take turns: otherwise each switch between
//! them wakes an idle CPU, which takes up to 50 us in a virtual machine.

use libc::pid_t;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// A thread that is kept on one CPU, and the CPUs that it may use otherwise.
pub(crate) struct Turns {
    pub(crate) tid: pid_t,
    cpu: Option<usize>,
    before: CpuSet,
}

impl Turns {
    /// Begins with a stopped thread. `None` if its CPUs cannot be read.
    pub(crate) fn of(tid: pid_t) -> Option<Turns> {
        let before = sched_getaffinity(Pid::from_raw(tid)).ok()?;
        Some(Turns { tid, cpu: None, before })
    }

    /// Keeps the thread on the CPU on which the tracer now runs, if the thread may run there.
    pub(crate) fn follow(&mut self) {
        let cpu = sched_getcpu();
        if self.cpu != Some(cpu) && self.before.is_set(cpu) && self.before.count() > 1 {
            let mut cpus = CpuSet::new();
            cpus.set(cpu);
            let _ = sched_setaffinity(Pid::from_raw(self.tid), &cpus);
            self.cpu = Some(cpu);
        }
    }

    /// Lets the thread use all its CPUs again, or a child that it has just made.
    pub(crate) fn release(&self, tid: pid_t) {
        if self.cpu.is_some() {
            let _ = sched_setaffinity(Pid::from_raw(tid), &self.before);
        }
    }
}
