//! Keeps the threads of a tree on the tracer's CPU while the program mostly waits: otherwise each
//! switch between two of them, or to the tracer, wakes an idle CPU, which takes up to 50 us in a
//! virtual machine. Measures whether the clock jumps more often so, and if not, stops for a while.

use super::events::clock;
use libc::pid_t;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::collections::HashMap;
use std::mem::replace;

/// A jump is measured over so many. After a break, threads are kept again after so few.
const ROUND: u64 = 64;
const FEW: u64 = 8;
/// Threads are kept if a jump takes less than this, in ns of real time.
const JUMP_NS: u64 = 1_000_000;
/// How long after a jump threads get their CPUs back: one perhaps computes.
const AFTER_NS: u64 = 2 * JUMP_NS;
/// For how many rounds threads are not kept if it has made nothing faster.
const PAUSE: u32 = 16;
/// The maximum number of threads that are kept: each takes two system calls.
const THREADS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Turns {
    /// The tracer's other CPUs, while threads are kept.
    own: Option<CpuSet>,
    /// The CPUs of each thread that is kept, or was before it got them back.
    before: HashMap<pid_t, CpuSet>,
    /// The number of jumps at the begin of this round, when that was, and when the last jump was.
    jumps: u64,
    since: u64,
    jumped: u64,
    /// How long a jump takes, on average, if threads are kept and if not; zero if not known.
    kept_ns: u64,
    free_ns: u64,
    pause: u32,
}

impl Turns {
    /// Notes that the clock has jumped, so many times by now.
    pub(crate) fn has_jumped(&mut self, jumps: u64, threads: impl ExactSizeIterator<Item = pid_t>) {
        let now = clock(libc::CLOCK_MONOTONIC);
        if now > replace(&mut self.jumped, now) + AFTER_NS {
            (self.jumps, self.since) = (jumps, now);
        }
        let is_kept = self.own.is_some();
        let is_known = !is_kept && self.pause == 0 && self.free_ns > 0;
        let count = jumps - self.jumps;
        if count < if is_known { FEW } else { ROUND } {
            return;
        }
        let took = (now - self.since) / count;
        (self.jumps, self.since) = (jumps, now);
        let average = if is_kept { &mut self.kept_ns } else { &mut self.free_ns };
        if !is_known {
            *average = if *average == 0 { took } else { (3 * *average + took) / 4 };
        }
        if is_kept {
            if self.kept_ns > self.free_ns + self.free_ns / 8 {
                self.end();
                (self.kept_ns, self.pause) = (0, PAUSE);
            }
        } else if self.pause > 0 {
            self.pause -= 1;
        } else if took < JUMP_NS && threads.len() <= THREADS_MAX {
            self.begin(threads);
        }
    }

    fn begin(&mut self, threads: impl Iterator<Item = pid_t>) {
        let (mut only, cpu) = (CpuSet::new(), sched_getcpu());
        only.set(cpu);
        let keep = |tid| {
            let cpus = sched_getaffinity(tid).ok()?;
            let has_others = cpus.is_set(cpu) && cpus.count() > 1;
            (has_others && sched_setaffinity(tid, &only).is_ok()).then_some(cpus)
        };
        self.own = keep(None);
        if self.own.is_some() {
            let kept = threads.filter_map(|tid| Some((tid, keep(Pid::from_raw(tid))?)));
            self.before = kept.collect();
        }
    }

    /// Lets all threads use all their CPUs again.
    fn end(&mut self) {
        if let Some(own) = self.own.take() {
            let _ = sched_setaffinity(None, &own);
            for (tid, cpus) in &self.before {
                let _ = sched_setaffinity(Pid::from_raw(*tid), cpus);
            }
        }
    }

    /// Ends before the program reads or sets on which CPUs a thread may run, and does not begin
    /// before the clock has jumped anew: until then, the call has perhaps yet to be made.
    pub(crate) fn end_for_call(&mut self, jumps: u64) {
        self.end();
        self.jumps = jumps;
    }

    /// Ends if the clock has not jumped for a while. Returns whether threads are still kept.
    pub(crate) fn go_on(&mut self) -> bool {
        if self.own.is_some() && clock(libc::CLOCK_MONOTONIC) > self.jumped + AFTER_NS {
            self.end();
        }
        self.own.is_some()
    }

    /// Keeps the child of a thread like the thread. If that has got its CPUs back since it made the
    /// child, gives them to the child.
    pub(crate) fn add(&mut self, parent: pid_t, child: pid_t) {
        let Some(cpus) = self.before.get(&parent).copied() else { return };
        let tid = Pid::from_raw(child);
        if self.own.is_some() {
            self.before.insert(child, cpus);
        } else if sched_getaffinity(tid).is_ok_and(|of| of.count() == 1) {
            let _ = sched_setaffinity(tid, &cpus);
        }
    }

    /// Forgets a thread that has ended, or whose CPUs the program sets.
    pub(crate) fn forget(&mut self, tid: pid_t) {
        self.before.remove(&tid);
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.end();
    }
}
