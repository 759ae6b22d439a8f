//! The patch of May 2004, which remembered in a timer where it had run last, so that a
//! cancel need not look at every CPU. Its author suspected that a timer could overlap itself and
//! that a cancel would then wait for the later callback only. It could; this finds how.
//!
//! The protocol is told here from the thread's description, in words of our own. Every access sees
//! the last one: what breaks it is no ordering. The same story with our core is
//! `arming::a_timer_never_overlaps_itself`.

use super::Checked;
use super::checker::{Checker, Depth};
use super::diagram::{Field, Findings, Log};
use super::stage::{CPU0, CPU1};
use std::sync::Arc;
use tickless_core::platform::Lock;
use tickless_core::time::CpuId;

const NOWHERE: u64 = 0;

/// One timer, and the two bases it may be on.
struct Kernel<C: Checker> {
    bases: [Base<C>; 2],
    /// The base on which the timer is pending.
    pending_on: Field<C>,
    /// The base on which its callback began last; never reset, since the timer may be gone when
    /// the callback returns.
    last_running: Field<C>,
    /// Serialises those who arm the timer.
    timer_lock: C::Lock<()>,
    /// How many of the timer's callbacks run.
    inside: C::Lock<u32>,
    log: Log,
}

struct Base<C: Checker> {
    lock: C::Lock<()>,
    /// Is the timer's callback running here?
    running: Field<C>,
}

impl<C: Checker> Kernel<C> {
    fn new(log: &Log) -> Arc<Self> {
        let base = |()| Base { lock: C::Lock::new(()), running: Field::new(0) };
        Arc::new(Kernel {
            bases: [(), ()].map(base),
            pending_on: Field::new(name(CPU0)),
            last_running: Field::new(NOWHERE),
            timer_lock: C::Lock::new(()),
            inside: C::Lock::new(0),
            log: log.clone(),
        })
    }

    /// Arms the timer, which runs or is over, on another CPU.
    fn arm(&self, cpu: CpuId) {
        let timer = self.timer_lock.lock();
        if self.pending_on.read() == NOWHERE {
            let base = self.bases[cpu.index()].lock.lock();
            self.pending_on.write(name(cpu));
            self.log.says(cpu.index(), "arms the timer here");
            drop(base);
        }
        drop(timer);
    }

    /// The timer interrupt: fires the timer if it is pending here.
    fn interrupt(&self, cpu: CpuId) {
        let base = &self.bases[cpu.index()];
        let guard = base.lock.lock();
        if self.pending_on.read() != name(cpu) {
            return;
        }
        base.running.write(1);
        self.pending_on.write(NOWHERE);
        self.last_running.write(name(cpu));
        self.log.says(cpu.index(), format!("timer expires: last_running = {}", cpu.0));
        drop(guard);
        *self.inside.lock() += 1;
        self.log.says(cpu.index(), "the callback begins");
        C::yield_now();
        *self.inside.lock() -= 1;
        self.log.says(cpu.index(), "the callback ends");
        let guard = base.lock.lock();
        base.running.write(0);
        drop(guard);
    }

    /// Cancels the timer and waits. Returns whether a callback still runs afterwards.
    fn cancel_sync(&self, cpu: CpuId) -> bool {
        self.log.says(cpu.index(), "cancels and waits");
        loop {
            let timer = self.timer_lock.lock();
            self.pending_on.write(NOWHERE);
            drop(timer);
            let last = self.last_running.read();
            if let Some(base) = self.bases.get(last.wrapping_sub(1) as usize) {
                self.log.says(cpu.index(), format!("  waits for CPU {} only", last - 1));
                while base.running.read() == 1 {
                    C::yield_now();
                }
            }
            if self.pending_on.read() == NOWHERE && self.last_running.read() == last {
                break;
            }
        }
        let still_runs = *self.inside.lock() > 0;
        self.log.says(cpu.index(), if still_runs { "  returns too early" } else { "  returns" });
        still_runs
    }
}

fn name(cpu: CpuId) -> u64 {
    u64::from(cpu.0) + 1
}

/// One run: the timer is due on one CPU, and the other arms it, fires it and cancels it.
fn story<C: Checker>(findings: &Findings) {
    let log = Log::default();
    let kernel = Kernel::<C>::new(&log);
    let other = Arc::clone(&kernel);
    let handler = C::spawn(CPU0, move || other.interrupt(CPU0));
    kernel.arm(CPU1);
    kernel.interrupt(CPU1);
    let broken = kernel.cancel_sync(CPU1);
    C::join(handler);
    findings.add(&log, broken);
}

/// Goal: the overlap that its author suspected is found, and shown.
/// Method: all schedules of a callback that runs for a while on one CPU, and of another CPU that
/// arms the timer meanwhile, fires it, and cancels it.
#[test]
fn the_overlap_that_was_suspected_in_2004() {
    let findings = Findings::default();
    let found = findings.clone();
    Checked::explore(Depth { preemptions: 3, ..Depth::usual() }, move || story::<Checked>(&found));
    let diagram = findings.diagram(["CPU 0", "CPU 1"]);
    println!("last_running, 2004: {findings} under {}\n\n{diagram}", Checked::NAME);
    assert!(findings.broken() > 0, "the checker does not see the overlap any more");
    assert!(findings.broken() < findings.schedules());
    let page = include_str!("../../../../docs/book/src/cancel.md");
    assert!(
        Checked::IS_RANDOM || page.contains(&diagram),
        "docs/book/src/cancel.md shows another diagram"
    );
}
