//! W3: a great many timers expire, spread at random over one second; the callback adds one.
//!
//! Peers differ in how time passes, so each row has a note. In steps: the time is moved by hand, 1
//! ms at a time, and only the calls are measured. Caught up: all are due when the driver first
//! runs. Real time: the timers fire as the second passes, and the CPU time of the whole process
//! counts, sleeping and waking included.

use super::{Choice, contender, foreigner, short};
use crate::effort::Effort;
use crate::peers::expirations;
use crate::peers::foreign;
use crate::report::Table;

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Per timer, callback included.";
    let title = format!("bulk expiry of {} timers spread over 1 s", short(effort.bulk));
    let mut table = Table::new("W3", &title, about);
    let deadlines = foreign::within_a_second(effort.bulk);
    let mut contenders = Vec::new();
    for peer in expirations().into_iter().filter(|peer| choice.wants(peer.name)) {
        table.note(peer.name, peer.how);
        let deadlines = &deadlines;
        contenders.push(contender(peer.name, move || {
            let (fired, took) = (peer.run)(deadlines);
            assert_eq!(fired, deadlines.len() as u64, "{}: each fires once", peer.name);
            took.as_nanos() as f64 / deadlines.len() as f64
        }));
    }
    let sum = foreign::sum(deadlines.iter().copied());
    for (peer, program) in choice.foreign(foreign::EXPIRE) {
        table.note(peer.name, peer.how);
        let ask = foreign::lazily(program, foreign::EXPIRE, effort.bulk, 0);
        contenders.push(foreigner(peer.name, ask, effort.bulk, move || sum));
    }
    table.measure("ns per timer", contenders, effort.bulk_repetitions);
    vec![table]
}
