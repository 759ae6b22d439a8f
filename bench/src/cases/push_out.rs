//! W2: push the deadline of a random pending timer out.
//!
//! What a server does with an idle timeout on every request. Two ways: each push adds up to 100 s
//! to the timer's own deadline (W2), which a wheel's branches cannot predict; or all timeouts
//! are equally long, so that each push goes behind all others (W2i). Beside them stands what
//! nobody can beat: a bare read and write of a random 64-byte node.

use super::{Choice, contender, short};
use crate::effort::Effort;
use crate::peers::foreign::{self, Kind};
use crate::peers::{AnyTable, equal_tables, tables};
use crate::random::Random;
use crate::report::{Cell, Table};
use crate::sample::{Figure, Stopwatch, interleave};
use std::cell::RefCell;
use std::time::Duration;

pub const TOUCH: &str = "(bare touch of a random 64 B node)";

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Deadlines 10 to 20 minutes away at first; each push adds up to 100 s. Timers are \
                 reached through a vector of handles.";
    let mut random = Table::new("W2", "push out a random pending deadline, of so many", about);
    let about = "The same with equal timeouts: each push goes behind all others.";
    let mut equal = Table::new("W2i", "push out an idle timeout, of so many", about);
    for &pending in effort.pending {
        for (table, later) in [(&mut random, Later::Random), (&mut equal, Later::ThanAll)] {
            let column = table.column(&short(pending));
            for (name, figure) in of_pending(pending, later, effort, choice) {
                table.put(name, column, figure.map(Cell::ns));
            }
        }
    }
    vec![random, equal]
}

/// What a deadline is pushed out to.
#[derive(Clone, Copy)]
enum Later {
    /// Its own, and up to 100 s.
    Random,
    /// A little later than the last push.
    ThanAll,
}

/// From push to push: all of a run fit into a few minutes.
const STEP: Duration = Duration::from_micros(100);

fn of_pending(
    pending: usize,
    later: Later,
    effort: &Effort,
    choice: &Choice,
) -> Vec<(&'static str, Option<Figure>)> {
    let plans = RefCell::new(Plans::new(pending, later, effort));
    let first = plans.borrow().deadlines.clone();
    let plans = &plans;
    let mut contenders = Vec::new();
    let mut peers = tables();
    if let Later::ThanAll = later {
        peers.extend(equal_tables());
    }
    for peer in peers.into_iter().filter(|peer| choice.wants(peer.name)) {
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
        Later::Random => Kind::Push,
        Later::ThanAll => Kind::PushEqual,
    };
    for (peer, program) in choice.foreign(kind) {
        let mut ask = foreign::lazily(program, kind, pending, effort.operations);
        let mut round = 0;
        contenders.push(contender(peer.name, move || {
            round += 1;
            plans.borrow_mut().go_to(round);
            let sum = foreign::sum(plans.borrow().plan.iter().map(|&(_, after)| after));
            let answer = ask();
            assert_eq!((answer.count, answer.sum), (pending, sum), "{}: the same work", peer.name);
            answer.ns
        }));
    }
    let mut nodes = vec![Node([0; 8]); pending];
    let mut round = 0;
    contenders.push(contender(TOUCH, move || {
        round += 1;
        plans.borrow_mut().go_to(round);
        touch(&mut nodes, &plans.borrow().plan)
    }));
    interleave(contenders, effort.repetitions)
}

/// What is pushed out to when: the same for all contenders in each round.
struct Plans {
    round: usize,
    later: Later,
    /// The deadline of the last push.
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

    /// Makes the plan of a round, if that is not the one that is here.
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

fn sample(table: &mut dyn AnyTable, plan: &[(u32, Duration)], pending: usize) -> f64 {
    // The other contenders have had the caches since: the first half gets them back.
    let (before, plan) = plan.split_at(plan.len() / 2);
    table.push_all_out(before);
    let watch = Stopwatch::start();
    table.push_all_out(plan);
    let ns = watch.ns_per(plan.len());
    assert_eq!(table.pending(), pending, "all are still pending");
    ns
}

/// As large as a timer.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node([u64; 8]);

fn touch(nodes: &mut [Node], plan: &[(u32, Duration)]) -> f64 {
    let (before, plan) = plan.split_at(plan.len() / 2);
    let counts = nodes.iter().map(|node| node.0[2]).sum::<u64>();
    touch_all(nodes, before);
    let watch = Stopwatch::start();
    touch_all(nodes, plan);
    let ns = watch.ns_per(plan.len());
    let touched = nodes.iter().map(|node| node.0[2]).sum::<u64>() - counts;
    assert_eq!(touched, (before.len() + plan.len()) as u64);
    ns
}

fn touch_all(nodes: &mut [Node], plan: &[(u32, Duration)]) {
    for &(node, after) in plan {
        nodes[node as usize].0[0] = u64::from(after.subsec_nanos());
        nodes[node as usize].0[2] += 1;
    }
}
