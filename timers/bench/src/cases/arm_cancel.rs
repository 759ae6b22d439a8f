//! W1: arm a timer and cancel it, while many others are pending.
//!
//! This is the fate of most timeouts in a server: the answer comes in time. All deadlines are 10 to
//! 20 minutes away, at random.

use super::{Choice, contender, foreigner, short};
use crate::effort::Effort;
use crate::peers::foreign;
use crate::peers::{Table as Timers, equal_tables, tables, throwaway_tables};
use crate::random::Random;
use crate::report::Table;
use crate::sample::Stopwatch;
use std::time::Duration;

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "One operation is the pair. Deadlines 10 to 20 minutes away, at random.";
    let mut table = Table::new("W1", "arm + cancel, with so many others pending", about);
    effort.pending.iter().for_each(|&pending| with_pending(&mut table, pending, effort, choice));
    vec![table]
}

fn with_pending(table: &mut Table, pending: usize, effort: &Effort, choice: &Choice) {
    let mut random = Random::new();
    let others = random.many(pending, 600, 1200);
    let pairs = random.many(effort.operations, 600, 1200);
    let peers = tables().into_iter().chain(throwaway_tables()).chain(equal_tables());
    let contenders = peers.filter(|peer| choice.wants(peer.name)).map(|peer| {
        let mut table = (peer.new)();
        table.add_all(&others);
        contender(peer.name, {
            let pairs = &pairs;
            move || sample(table.as_mut(), pairs, pending)
        })
    });
    let sum = foreign::sum(pairs.iter().copied());
    let foreigners = choice.foreign(foreign::PAIRS).map(|(peer, program)| {
        let ask = foreign::lazily(program, foreign::PAIRS, pending, effort.operations);
        foreigner(peer.name, ask, pending, move || sum)
    });
    table.measure(&short(pending), contenders.chain(foreigners).collect(), effort.repetitions);
}

fn sample(table: &mut dyn Timers, pairs: &[Duration], pending: usize) -> f64 {
    let watch = Stopwatch::start();
    table.pairs(pairs);
    let ns = watch.ns_per(pairs.len());
    assert_eq!(table.pending(), pending, "a pair leaves nothing behind, and nothing fired");
    ns
}
