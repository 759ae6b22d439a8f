//! The patch of 2016 that collected expired timers in the interrupt, onto temporary lists
//! which a thread then fired. It was applied and taken back: both sides changed the heads of those
//! lists, one of them without the lock, and timers dangled. This finds how one is lost.
//!
//! The protocol is told here from its description, in words of our own and reduced to one list.
//! Every access sees the last one. The same story with our core is
//! `deferring::collect_against_fire`.

use super::Checked;
use super::checker::{Checker, Depth};
use super::diagram::{Field, Findings, Log};
use super::stage::CPU0;
use std::sync::Arc;
use tickless_core::platform::Lock;

const TICK: usize = 0;
const THREAD: usize = 1;
/// The end of a list.
const NONE: u64 = 0;
/// The timer that has been collected already...
const A: u64 = 1;
/// ...and the one that the next tick finds.
const B: u64 = 2;

/// How the expiry thread changes the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// As the patch had it: the list is its own, or so it believes.
    WithoutTheLock,
    /// As it has to be.
    UnderTheLock,
}

/// What has been collected, as a list from a head.
struct Collected<C: Checker> {
    lock: C::Lock<()>,
    head: Field<C>,
    /// By timer: which one comes after it.
    next: [Field<C>; 3],
    /// By timer: has it fired?
    fired: [Field<C>; 3],
    log: Log,
}

impl<C: Checker> Collected<C> {
    fn new(log: &Log) -> Arc<Self> {
        Arc::new(Collected {
            lock: C::Lock::new(()),
            head: Field::new(A),
            next: [(); 3].map(|()| Field::new(NONE)),
            fired: [(); 3].map(|()| Field::new(0)),
            log: log.clone(),
        })
    }

    /// A tick finds that B has expired and puts it in front of what has been collected.
    fn tick(&self) {
        let guard = self.lock.lock();
        let first = self.head.read();
        self.next[B as usize].write(first);
        self.head.write(B);
        self.log.says(TICK, format!("collects B: head = {}", list(&[B, first])));
        drop(guard);
    }

    /// The expiry thread fires what has been collected.
    fn fire_all(&self, thread: Thread) {
        loop {
            let guard = (thread == Thread::UnderTheLock).then(|| self.lock.lock());
            let first = self.head.read();
            if first == NONE {
                return;
            }
            self.log.says(THREAD, format!("takes {} from the head", list(&[first])));
            let next = self.next[first as usize].read();
            self.head.write(next);
            self.log.says(THREAD, format!("  head = {}", list(&[next])));
            drop(guard);
            self.log.says(THREAD, format!("  fires {}", list(&[first])));
            self.fired[first as usize].write(1);
        }
    }
}

fn list(timers: &[u64]) -> String {
    let names = timers.iter().filter(|timer| **timer != NONE);
    let names: Vec<_> = names.map(|timer| if *timer == A { "A" } else { "B" }).collect();
    if names.is_empty() { "nothing".into() } else { names.join(" -> ") }
}

/// One run: a tick collects B while the thread fires A; later the thread is woken once more.
fn story<C: Checker>(thread: Thread, findings: &Findings) {
    let log = Log::default();
    let collected = Collected::<C>::new(&log);
    let other = Arc::clone(&collected);
    let expiry = C::spawn(CPU0, move || other.fire_all(thread));
    collected.tick();
    C::join(expiry);
    log.says(THREAD, "woken for B: head is read again");
    collected.fire_all(thread);
    let lost = collected.fired[B as usize].read() == 0;
    if lost {
        log.says(THREAD, "  nothing there: B never fires");
    }
    findings.add(&log, lost);
}

fn explore(thread: Thread) -> Findings {
    let findings = Findings::default();
    let found = findings.clone();
    Checked::explore(Depth::usual(), move || story::<Checked>(thread, &found));
    findings
}

/// Goal: the lost timer is found, and shown; with the lock there is none.
#[test]
fn the_timer_that_the_withdrawn_patch_lost() {
    let findings = explore(Thread::WithoutTheLock);
    let diagram = findings.diagram(["tick", "expiry thread"]);
    println!("temporary heads, 2016: {findings} under {}\n\n{diagram}", Checked::NAME);
    assert!(findings.broken() > 0, "the checker does not see the loss any more");
    let page = include_str!("../../../../docs/book/src/deferred.md");
    assert!(
        Checked::IS_RANDOM || page.contains(&diagram),
        "docs/book/src/deferred.md shows another one"
    );
    let findings = explore(Thread::UnderTheLock);
    println!("the same under the lock: {findings}");
    assert_eq!(findings.broken(), 0);
}
