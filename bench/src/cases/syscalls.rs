//! System calls per arming in the steady state: timeouts are armed, pushed out and cancelled while
//! others are pending and the drivers sleep.

use super::Choice;
use crate::effort::Effort;
use crate::peers::{Table as _, timeout};
use crate::random::Random;
use crate::report::Table;
use crate::sample::Figure;

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    const NAME: &str = "**Timeout**";
    let about = "Calls that woke a driver, by `Timers::stats`, over armings; without the very \
                 first arming, which has to wake one.";
    let mut table = Table::new("syscalls", "system calls per arming, steady state", about);
    let column = table.column("calls per arming");
    if !choice.wants(NAME) {
        return vec![table];
    }
    let mut random = Random::new();
    let mut timeouts = timeout::FromNow::default();
    random.many(1000, 600, 1200).into_iter().for_each(|after| timeouts.add(after));
    let before = counts();
    for round in 0..effort.operations {
        timeouts.pair(random.seconds(600, 1200));
        timeouts.push_out(round % 1000, random.seconds(1200, 1800));
    }
    let (calls, arms) = counts();
    let (calls, counted) = (calls - before.0, arms - before.1);
    // The library may count a push-out that takes no lock later, or not at all.
    assert!(counted >= effort.operations as u64);
    let arms = 2 * effort.operations;
    let figure = Figure::of(vec![calls as f64 / arms as f64]);
    table.put(NAME, column, "", figure);
    vec![table]
}

/// The numbers of system calls that woke drivers, and of armings.
fn counts() -> (u64, u64) {
    let stats = timeout::TIMERS.stats();
    let total = stats.total();
    (stats.bases.iter().map(|base| base.wake_calls).sum(), total.armed + total.rearmed)
}
