//! Random histories: the wheel and its naive twin perform the same operations, and after each of
//! them their results and states are compared (W6).

use super::nodes::Nodes;
use super::twin::{Entry, Twin};
use crate::support::REACHES;
use proptest::prelude::*;
use proptest::test_runner::Config;
use tickless_core::queues::wheel::{REACH, Wakes, Wheel};
use tickless_core::time::{Ns, Tick};

const TIMERS: usize = 12;

/// The kind of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// All operations of the wheel, in exactly the twin's order.
    Exact,
    /// Later deadlines of pending timers are stored without the wheel. The twin does not know when
    /// the wheel moves them, so deadlines are within the wheel's reach, and armings pass the
    /// current time.
    PushOut,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    ticks: u64,
    thousandths: u64,
}

/// A deadline.
#[derive(Clone, Copy, Debug)]
enum When {
    In(Span),
    Ago(Span),
    /// The timer's own deadline, a later one, or an earlier one.
    Same,
    Later(Span),
    Sooner(Span),
    /// This long before the end of the clock's range.
    BeforeNever(u64),
}

/// The current time that an arming passes.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Now,
    Older(Span),
}

#[derive(Clone, Copy, Debug)]
struct Arming {
    timer: usize,
    when: When,
    seen: Seen,
    wakes: Wakes,
}

/// One step. An arming or cancel between two pops stands for a callback's.
#[derive(Clone, Copy, Debug)]
enum Op {
    Arm(Arming),
    Cancel { timer: usize },
    Pass(Span),
    Advance(Span),
    AdvanceToThePast(Span),
    Pop { budget: usize },
    PopAll { budget: usize },
    Drain,
}

#[derive(Clone, Debug)]
struct History {
    tick: Ns,
    start: Ns,
    ops: Vec<Op>,
}

fn span() -> impl Strategy<Value = Span> {
    let boundary = (0..REACHES.len(), 0..5u64).prop_map(|(level, off)| REACHES[level] + off - 2);
    let granules = (0..9u32, 1..70u64).prop_map(|(level, count)| count << (3 * level));
    let ticks = prop_oneof![
        3 => 0..3u64,
        4 => 0..600u64,
        3 => boundary,
        3 => granules,
        1 => REACH..64 * REACH,
    ];
    let thousandths = prop_oneof![2 => Just(0u64), 1 => 0..1000u64];
    (ticks, thousandths).prop_map(|(ticks, thousandths)| Span { ticks, thousandths })
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        8 => span().prop_map(When::In),
        1 => span().prop_map(When::Ago),
        1 => Just(When::Same),
        4 => span().prop_map(When::Later),
        2 => span().prop_map(When::Sooner),
        1 => (0..3u64).prop_map(When::BeforeNever),
    ]
}

fn arming() -> impl Strategy<Value = Arming> {
    let seen = prop_oneof![3 => Just(Seen::Now), 1 => span().prop_map(Seen::Older)];
    let wakes = prop_oneof![4 => Just(Wakes::Yes), 1 => Just(Wakes::No)];
    (0..TIMERS, when(), seen, wakes).prop_map(|(timer, when, seen, wakes)| Arming {
        timer,
        when,
        seen,
        wakes,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => arming().prop_map(Op::Arm),
        2 => (0..TIMERS).prop_map(|timer| Op::Cancel { timer }),
        1 => span().prop_map(Op::Pass),
        4 => span().prop_map(Op::Advance),
        1 => span().prop_map(Op::AdvanceToThePast),
        4 => (0..4usize).prop_map(|budget| Op::Pop { budget }),
        2 => (0..6usize).prop_map(|budget| Op::PopAll { budget }),
        2 => Just(Op::Drain),
    ]
}

fn history() -> impl Strategy<Value = History> {
    let tick =
        prop::sample::select(vec![1_000, 1_001, 999_983, 1_000_000, 4_000_000, 1_000_000_000u64]);
    let start = prop_oneof![
        prop::sample::select(vec![0, 1, 7, 8, 63, 64, 511, (1 << 20) - 1, u64::from(u32::MAX)]),
        0..1u64 << 40,
    ];
    let length = if cfg!(miri) { 1..40 } else { 1..150usize };
    (tick, start, any::<bool>(), prop::collection::vec(op(), length)).prop_map(
        |(tick, start, at_the_end, ops)| {
            let start = tick * start.min(u64::MAX / tick / 2);
            let start = Ns(if at_the_end { start } else { u64::MAX - start });
            History { tick: Ns(tick), start, ops }
        },
    )
}

struct Pair {
    kind: Kind,
    tick: Ns,
    now: u64,
    nodes: Nodes,
    /// By timer: the deadline of the last arming.
    own: [u64; TIMERS],
    wheel: Wheel,
    twin: Twin,
}

type Outcome = Result<(), TestCaseError>;

impl Pair {
    fn new(kind: Kind, tick: Ns, start: Ns) -> Pair {
        let wheel = Wheel::new(Tick::new(tick.to_duration()).expect("a valid tick"), start);
        let (nodes, twin) = (Nodes::new(TIMERS), Twin::new(tick, start.0));
        Pair { kind, tick, now: start.0, nodes, own: [0; TIMERS], wheel, twin }
    }

    fn run(&mut self, op: Op) -> Outcome {
        match op {
            Op::Arm(Arming { timer, when, seen, wakes }) => {
                let (deadline, seen) = (self.deadline(timer, when), self.seen(seen));
                if self.push_out(timer, deadline, wakes)? {
                    return self.compare();
                }
                let due = self.nodes.arm(&mut self.wheel, timer, Ns(deadline), Ns(seen), wakes);
                let twin = self.twin.arm(timer, deadline, seen, wakes == Wakes::No);
                prop_assert_eq!(due, twin);
            }
            Op::Cancel { timer } => {
                let linked = self.nodes.at(timer).node().is_linked();
                prop_assert_eq!(linked, self.twin.remove(timer).is_some());
                if linked {
                    self.wheel.cancel(self.nodes.at(timer).node());
                }
            }
            Op::Pass(span) => self.now = self.now.saturating_add(self.ns(span)),
            Op::Advance(span) => {
                self.now = self.now.saturating_add(self.ns(span));
                self.advance(self.now);
            }
            Op::AdvanceToThePast(span) => self.advance(self.now.saturating_sub(self.ns(span))),
            Op::Pop { budget } => {
                self.pop(&mut { budget })?;
            }
            Op::PopAll { budget } => {
                let mut budget = budget;
                while self.pop(&mut budget)? {}
            }
            Op::Drain => self.drain()?,
        }
        self.compare()
    }

    /// Pushes a pending timer out without the wheel, if the history does that. Returns whether it
    /// did.
    fn push_out(
        &mut self,
        timer: usize,
        deadline: u64,
        wakes: Wakes,
    ) -> Result<bool, TestCaseError> {
        let (at, own) = (self.nodes.at(timer), std::mem::replace(&mut self.own[timer], deadline));
        let pending = self.twin.pending().find(|entry| entry.id == timer);
        let same_kind = pending.is_some_and(|entry| entry.deferrable == (wakes == Wakes::No));
        if self.kind != Kind::PushOut || !same_kind || deadline < own || own == u64::MAX {
            return Ok(false);
        }
        let is_never = deadline == u64::MAX;
        prop_assert_eq!(at.push_out(at.read(), Ns(deadline)), !is_never);
        if !is_never {
            self.twin.push_out(timer, deadline);
        }
        Ok(!is_never)
    }

    fn drain(&mut self) -> Outcome {
        let mut budget = usize::MAX;
        while self.pop(&mut budget)? {}
        Ok(())
    }

    fn advance(&mut self, now: u64) {
        self.wheel.advance(Ns(now));
        self.twin.advance(now);
    }

    /// Pops once. Returns whether a timer was due.
    fn pop(&mut self, budget: &mut usize) -> Result<bool, TestCaseError> {
        let mut twins_budget = *budget;
        let popped = self.nodes.pop(&mut self.wheel, budget);
        let deadline = popped.map(|popped| popped.1);
        let popped = popped.map(|popped| popped.0);
        let entry = if self.kind == Kind::Exact {
            let entry = self.twin.pop(&mut twins_budget);
            prop_assert_eq!(popped, entry.as_ref().map(|entry| entry.id));
            prop_assert_eq!(*budget, twins_budget);
            entry
        } else if let Some(id) = popped {
            Some(self.twin.popped(id).map_err(TestCaseError::fail)?)
        } else {
            if *budget > 0 {
                self.twin.drained().map_err(TestCaseError::fail)?;
            } else {
                self.twin.ran_out();
            }
            None
        };
        if let Some(entry) = &entry {
            self.never_early(entry)?;
            prop_assert_eq!(deadline, Some(Ns(entry.deadline)));
        }
        Ok(entry.is_some())
    }

    /// Checks W1 (never early) without the twin's arithmetic.
    fn never_early(&self, entry: &Entry) -> Outcome {
        prop_assert!(entry.deadline <= self.now, "early: {entry:?} at {}", self.now);
        let node = self.nodes.at(entry.id);
        prop_assert!(!node.node().is_linked());
        prop_assert!(!node.push_out(node.read(), Ns(entry.deadline)), "its deadline is not closed");
        Ok(())
    }

    fn compare(&self) -> Outcome {
        let (next, twin) = (self.wheel.next_event(), self.twin.next_event());
        prop_assert!(twin.contains(&next), "next event {next:?}, must be {twin:?}");
        prop_assert_eq!(self.wheel.len(), self.twin.pending().count());
        prop_assert_eq!(self.wheel.is_empty(), self.twin.pending().next().is_none());
        // Too slow under Miri.
        if cfg!(miri) { Ok(()) } else { self.compare_all() }
    }

    fn compare_all(&self) -> Outcome {
        prop_assert_eq!(self.wheel.check(), Ok(()));
        let mut visited: Vec<_> = self.wheel.timers().map(|node| self.nodes.index(node)).collect();
        let mut pending: Vec<_> = self.twin.pending().map(|entry| entry.id).collect();
        visited.sort_unstable();
        pending.sort_unstable();
        prop_assert_eq!(visited, pending);
        Ok(())
    }

    fn ns(&self, span: Span) -> u64 {
        let part = self.tick.0 * span.thousandths / 1000;
        span.ticks.saturating_mul(self.tick.0).saturating_add(part)
    }

    fn deadline(&self, timer: usize, when: When) -> u64 {
        let own = self.own[timer];
        let deadline = match when {
            When::In(span) => self.now.saturating_add(self.ns(span)),
            When::Ago(span) => self.now.saturating_sub(self.ns(span)),
            When::Same => own,
            When::Later(span) => own.saturating_add(self.ns(span)),
            When::Sooner(span) => own.saturating_sub(self.ns(span)),
            When::BeforeNever(ns) => u64::MAX - ns,
        };
        if self.kind == Kind::PushOut {
            let near = self.now.saturating_add(REACH / 2 * self.tick.0);
            return deadline.min(near);
        }
        deadline
    }

    fn seen(&self, seen: Seen) -> u64 {
        match (self.kind, seen) {
            (Kind::PushOut, _) => self.now,
            (_, Seen::Now) => self.now,
            (_, Seen::Older(span)) => self.now.saturating_sub(self.ns(span)),
        }
    }
}

fn run(kind: Kind, history: &History) -> Outcome {
    let mut pair = Pair::new(kind, history.tick, history.start);
    for &op in &history.ops {
        pair.run(op)?;
    }
    // At the end all timers fire.
    pair.now = pair.now.saturating_add((64 * REACH).saturating_mul(pair.tick.0));
    pair.advance(pair.now);
    pair.drain()?;
    pair.compare_all()?;
    if let Some(entry) = pair.twin.not_fired() {
        prop_assert!(false, "not fired: {entry:?}");
    }
    Ok(())
}

/// A failure prints its smallest history, which later runs try first; `PROPTEST_CASES=n` runs more.
fn config() -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = if cfg!(miri) { 3 } else { 2000 };
    }
    if cfg!(miri) {
        // Miri has no file system to store failures in.
        config.failure_persistence = None;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    /// Goal: the wheel agrees with a sorted list, in exact order (W4, W6).
    #[test]
    fn wheel_is_a_sorted_list(history in history()) {
        run(Kind::Exact, &history)?;
    }

    /// Goal: pushed-out timers fire within the bound on lateness, and the others in exact order.
    #[test]
    fn a_wheel_with_pushed_out_timers_is_a_sorted_list(history in history()) {
        run(Kind::PushOut, &history)?;
    }
}
