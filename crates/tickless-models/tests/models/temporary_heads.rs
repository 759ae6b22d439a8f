//! The patch of 2016 that collected expired timers in the interrupt on temporary lists, which a
//! thread then fired. It was applied and reverted: both sides changed the heads of those lists, one
//! of them without the lock, and timers were lost. This model finds such a schedule.
//!
//! The protocol is written from the description of the patch, reduced to one list. All accesses are
//! sequentially consistent. `deferring::collect_against_fire` runs the same scenario with our core.

use super::diagram::{Field, Log, explore};
use super::exploring::Depth;
use super::stage::CPU0;
use crate::checker::{CheckedLock, share};
use std::sync::Arc;
use tickless_core::platform::Lock;

const TICK: usize = 0;
const THREAD: usize = 1;
const NONE: u64 = 0;
/// The timer that has been collected already.
const A: u64 = 1;
/// The timer that the next tick collects.
const B: u64 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// As in the patch, which assumed that only the thread uses the list.
    WithoutTheLock,
    UnderTheLock,
}

struct Collected {
    lock: CheckedLock<()>,
    head: Field,
    /// By timer: the next one.
    next: [Field; 3],
    /// By timer: 1 if it has fired.
    fired: [Field; 3],
    log: Log,
}

impl Collected {
    fn new(log: &Log) -> Arc<Self> {
        Arc::new(Collected {
            lock: CheckedLock::new(()),
            head: Field::new(A),
            next: [(); 3].map(|()| Field::new(NONE)),
            fired: [(); 3].map(|()| Field::new(0)),
            log: log.clone(),
        })
    }

    /// A tick collects B: puts it at the front of the list.
    fn tick(&self) {
        let guard = self.lock.lock();
        let first = self.head.read();
        self.next[B as usize].write(first);
        self.head.write(B);
        self.log.add(TICK, format!("collects B: head = {}", list(&[B, first])));
        drop(guard);
    }

    fn fire_all(&self, thread: Thread) {
        loop {
            let guard = (thread == Thread::UnderTheLock).then(|| self.lock.lock());
            let first = self.head.read();
            if first == NONE {
                return;
            }
            self.log.add(THREAD, format!("takes {} from the head", list(&[first])));
            let next = self.next[first as usize].read();
            self.head.write(next);
            self.log.add(THREAD, format!("  head = {}", list(&[next])));
            drop(guard);
            self.log.add(THREAD, format!("  fires {}", list(&[first])));
            self.fired[first as usize].write(1);
        }
    }
}

fn list(timers: &[u64]) -> String {
    let names = timers.iter().filter(|timer| **timer != NONE);
    let names: Vec<_> = names.map(|timer| if *timer == A { "A" } else { "B" }).collect();
    if names.is_empty() { "nothing".into() } else { names.join(" -> ") }
}

/// One run: a tick collects B while the thread fires A; later the thread is woken again.
fn loses_b(thread: Thread, log: &Log) -> bool {
    let collected = Collected::new(log);
    let expiry = share(CPU0, &collected, move |collected| collected.fire_all(thread));
    collected.tick();
    expiry.join();
    log.add(THREAD, "woken for B: head is read again");
    collected.fire_all(thread);
    let lost = collected.fired[B as usize].read() == 0;
    if lost {
        log.add(THREAD, "  nothing there: B never fires");
    }
    lost
}

#[test]
fn the_timer_that_the_withdrawn_patch_lost() {
    let run = |name, thread| explore(name, Depth::usual(), move |log| loses_b(thread, log));
    let found = run("temporary heads, 2016", Thread::WithoutTheLock);
    let page = include_str!("../../../../docs/book/src/deferred.md");
    found.is_shown(["tick", "expiry thread"], page);
    assert_eq!(run("temporary heads, under the lock", Thread::UnderTheLock).broken, 0);
}
