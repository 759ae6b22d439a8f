//! W2: push the deadline of a random pending timer out.
//!
//! A server does this to an idle timeout on every request. In W2 each push adds up to 100 s to the
//! timer's own deadline, which makes a wheel's branches unpredictable. In W2i all timeouts are
//! equally long, so that each push goes behind all others. Lower bounds are a bare read and write
//! of a random 64-byte node and, for timers that several threads use, one compare-and-swap in such
//! a node, which is reached through a handle of 24 bytes.

use super::{Choice, contender, foreigner, short};
use crate::effort::Effort;
use crate::peers::foreign;
use crate::peers::{Table as Timers, equal_tables, table, tables};
use crate::random::Random;
use crate::report::Table;
use crate::sample::Stopwatch;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub const TOUCH: &str = "(bare touch of a random 64 B node)";
const SWAP: &str = "(bare compare-and-swap in a random 64 B node, by handle)";

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Deadlines 10 to 20 minutes away at first; each push adds up to 100 s. Timers are \
                 reached through a vector of handles.";
    let mut random = Table::new("W2", "push out a random pending deadline, of so many", about);
    let about = "As W2, but all timeouts are equal: each push goes behind all others.";
    let mut equal = Table::new("W2i", "push out an idle timeout, of so many", about);
    for &pending in effort.pending {
        for (table, later) in [(&mut random, Later::Random), (&mut equal, Later::ThanAll)] {
            of_pending(table, pending, later, effort, choice);
        }
    }
    vec![random, equal]
}

#[derive(Clone, Copy)]
enum Later {
    /// Up to 100 s later than it was.
    Random,
    /// A little later than the last push.
    ThanAll,
}

/// The time between pushes. All pushes of a run fit into a few minutes.
const STEP: Duration = Duration::from_micros(100);

fn of_pending(page: &mut Table, pending: usize, later: Later, effort: &Effort, choice: &Choice) {
    let plans = RefCell::new(Plans::new(pending, later, effort));
    let first = plans.borrow().deadlines.clone();
    let plans = &plans;
    let mut contenders = Vec::new();
    let mut peers = tables();
    if let Later::ThanAll = later {
        peers.extend(equal_tables());
    }
    peers.retain(|peer| choice.wants(peer.name));
    peers.extend([table::<Nodes, ()>(TOUCH), table::<Handles, ()>(SWAP)]);
    for peer in peers {
        let mut table = (peer.new)();
        table.add_all(&first);
        let mut round = 0;
        contenders.push(contender(peer.name, move || {
            round += 1;
            plans.borrow_mut().go_to(round);
            sample(table.as_mut(), &plans.borrow().plan, pending)
        }));
    }
    let kind = match later {
        Later::Random => foreign::PUSH,
        Later::ThanAll => foreign::PUSH_EQUAL,
    };
    for (peer, program) in choice.foreign(kind) {
        let ask = foreign::lazily(program, kind, pending, effort.operations);
        let mut round = 0;
        let sum = move || {
            round += 1;
            plans.borrow_mut().go_to(round);
            foreign::sum(plans.borrow().plan.iter().map(|&(_, after)| after))
        };
        contenders.push(foreigner(peer.name, ask, pending, sum));
    }
    page.measure(&short(pending), contenders, effort.repetitions);
}

struct Plans {
    round: usize,
    later: Later,
    last: Duration,
    random: Random,
    deadlines: Vec<Duration>,
    plan: Vec<(u32, Duration)>,
    operations: usize,
}

impl Plans {
    fn new(pending: usize, later: Later, effort: &Effort) -> Plans {
        let mut random = Random::new();
        let deadlines = random.many(pending, 600, 1200);
        let last = Duration::from_secs(1200);
        let operations = effort.operations;
        Plans { round: 0, later, last, random, deadlines, plan: Vec::new(), operations }
    }

    fn go_to(&mut self, round: usize) {
        if self.round == round {
            return;
        }
        self.round = round;
        self.plan.clear();
        for _ in 0..2 * self.operations {
            let timer = self.random.below(self.deadlines.len() as u64) as usize;
            self.last += STEP;
            match self.later {
                Later::Random => self.deadlines[timer] += self.random.seconds(0, 100),
                Later::ThanAll => self.deadlines[timer] = self.last,
            }
            self.plan.push((timer as u32, self.deadlines[timer]));
        }
    }
}

fn sample(table: &mut dyn Timers, plan: &[(u32, Duration)], pending: usize) -> f64 {
    // Warm the caches with the first half, because the other contenders have run since.
    let (before, plan) = plan.split_at(plan.len() / 2);
    table.push_all_out(before);
    let watch = Stopwatch::start();
    table.push_all_out(plan);
    let ns = watch.ns_per(plan.len());
    assert_eq!(table.pending(), pending, "all are still pending");
    ns
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node([u64; 8]);

#[derive(Default)]
struct Nodes(Vec<Node>);

impl Timers for Nodes {
    fn add(&mut self, _: Duration) {
        self.0.push(Node([0; 8]));
    }

    fn pair(&mut self, _: Duration) {}

    fn push_out(&mut self, node: usize, after: Duration) {
        let Node(words) = std::hint::black_box(&mut self.0[node]);
        words[0] = u64::from(after.subsec_nanos());
        words[2] += 1;
    }

    fn pending(&mut self) -> usize {
        self.0.len()
    }
}

/// Each is as large as a `Timeout`.
#[derive(Default)]
struct Handles(Vec<(Box<SharedNode>, [u64; 2])>);

#[derive(Default)]
#[repr(align(64))]
struct SharedNode(AtomicU64);

impl Timers for Handles {
    fn add(&mut self, _: Duration) {
        self.0.push(Default::default());
    }

    fn pair(&mut self, _: Duration) {}

    fn push_out(&mut self, handle: usize, after: Duration) {
        let (node, rest) = &self.0[handle];
        let from = node.0.load(Ordering::Relaxed);
        let to = from.wrapping_add(after.as_nanos() as u64 + rest[0]);
        let swapped = node.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        assert!(swapped.is_ok(), "only this thread writes");
    }

    fn pending(&mut self) -> usize {
        self.0.len()
    }
}
