//! The patch of May 2004 that stored in a timer where it had run last, so that a cancel need not
//! scan every CPU. Its author suspected that a timer could overlap itself, and that a cancel would
//! then wait for the later callback only. This model finds such a schedule.
//!
//! The protocol is written from the description in the mailing list's thread. All accesses are
//! sequentially consistent: the failure does not depend on memory orderings.
//! `arming::a_timer_never_overlaps_itself` runs the same scenario with our core.

use super::diagram::{Field, Log, explore};
use super::exploring::Depth;
use super::stage::{CPU0, CPU1};
use crate::checker::{CheckedLock, share, yield_now};
use std::sync::Arc;
use tickless_core::platform::Lock;
use tickless_core::time::CpuId;

const NOWHERE: u64 = 0;

struct Kernel {
    bases: [Base; 2],
    pending_on: Field,
    /// The base on which its callback began last; never reset, since the timer may be gone when
    /// the callback returns.
    last_running: Field,
    timer_lock: CheckedLock<()>,
    inside: CheckedLock<u32>,
    log: Log,
}

struct Base {
    lock: CheckedLock<()>,
    /// 1 while the timer's callback runs on this base.
    running: Field,
}

impl Kernel {
    fn new(log: &Log) -> Arc<Self> {
        let base = |()| Base { lock: CheckedLock::new(()), running: Field::new(0) };
        Arc::new(Kernel {
            bases: [(), ()].map(base),
            pending_on: Field::new(name(CPU0)),
            last_running: Field::new(NOWHERE),
            timer_lock: CheckedLock::new(()),
            inside: CheckedLock::new(0),
            log: log.clone(),
        })
    }

    fn arm(&self, cpu: CpuId) {
        let timer = self.timer_lock.lock();
        if self.pending_on.read() == NOWHERE {
            let base = self.bases[cpu.index()].lock.lock();
            self.pending_on.write(name(cpu));
            self.log.add(cpu.index(), "arms the timer here");
            drop(base);
        }
        drop(timer);
    }

    fn interrupt(&self, cpu: CpuId) {
        let base = &self.bases[cpu.index()];
        let guard = base.lock.lock();
        if self.pending_on.read() != name(cpu) {
            return;
        }
        base.running.write(1);
        self.pending_on.write(NOWHERE);
        self.last_running.write(name(cpu));
        self.log.add(cpu.index(), format!("timer expires: last_running = {}", cpu.0));
        drop(guard);
        *self.inside.lock() += 1;
        self.log.add(cpu.index(), "the callback begins");
        yield_now();
        *self.inside.lock() -= 1;
        self.log.add(cpu.index(), "the callback ends");
        let guard = base.lock.lock();
        base.running.write(0);
        drop(guard);
    }

    /// Cancels the timer and waits. Returns whether a callback still runs afterwards.
    fn cancel_sync(&self, cpu: CpuId) -> bool {
        self.log.add(cpu.index(), "cancels and waits");
        loop {
            let timer = self.timer_lock.lock();
            self.pending_on.write(NOWHERE);
            drop(timer);
            let last = self.last_running.read();
            if let Some(base) = self.bases.get(last.wrapping_sub(1) as usize) {
                self.log.add(cpu.index(), format!("  waits for CPU {} only", last - 1));
                while base.running.read() == 1 {
                    yield_now();
                }
            }
            if self.pending_on.read() == NOWHERE && self.last_running.read() == last {
                break;
            }
        }
        let still_runs = *self.inside.lock() > 0;
        self.log.add(cpu.index(), if still_runs { "  returns too early" } else { "  returns" });
        still_runs
    }
}

fn name(cpu: CpuId) -> u64 {
    u64::from(cpu.0) + 1
}

/// One run: the timer is due on one CPU; the other CPU arms it, fires it and cancels it.
fn overlaps(log: &Log) -> bool {
    let kernel = Kernel::new(log);
    let handler = share(CPU0, &kernel, |kernel| kernel.interrupt(CPU0));
    kernel.arm(CPU1);
    kernel.interrupt(CPU1);
    let broken = kernel.cancel_sync(CPU1);
    handler.join();
    broken
}

#[test]
fn the_overlap_that_was_suspected_in_2004() {
    let found = explore("last_running, 2004", Depth::three_preemptions(), overlaps);
    assert!(found.broken < found.schedules);
    found.is_shown(["CPU 0", "CPU 1"], include_str!("../../../../docs/book/src/cancel.md"));
}
