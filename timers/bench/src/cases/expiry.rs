//! W3: a great many timers expire, spread at random over one second; the callback adds one.
//!
//! Peers differ in how time passes, so each row has a note. In steps: the time is moved by hand, 1
//! ms at a time, and only the calls are measured. Caught up: all are due when the driver first
//! runs. Real time: the timers fire as the second passes, and the CPU time of the whole process
//! counts, sleeping and waking included.
//!
//! Two lower bounds: a bare walk of buckets that contain keys, and the same walk with a look at the
//! record of each key. A timer whose push-out is one store in its record is still in the bucket of
//! its old deadline, so expiry must look at the record.

use super::{Choice, contender, foreigner, short};
use crate::effort::Effort;
use crate::peers::expirations;
use crate::peers::foreign;
use crate::report::Table;
use crate::sample::Stopwatch;
use std::hint::black_box;
use std::time::Duration;

const WALK: &str = "(bare walk of buckets of 4 B keys)";
const RECORDS: &str = "(bare walk, and a look at the 16 B record of each key)";

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
    let deadlines = &deadlines;
    for (name, with_records) in [(WALK, false), (RECORDS, true)] {
        table.note(name, "in steps of 1 ms, one thread");
        contenders.push(contender(name, move || bare(deadlines, with_records)));
    }
    table.measure("ns per timer", contenders, effort.bulk_repetitions);
    vec![table]
}

/// Returns the nanoseconds per key of a walk over a second of buckets, one for each millisecond.
fn bare(deadlines: &[Duration], with_records: bool) -> f64 {
    struct Record {
        deadline: u64,
        pending: u64,
    }

    let mut buckets = vec![Vec::new(); 1_000];
    let mut records = Vec::new();
    for (key, deadline) in deadlines.iter().enumerate() {
        buckets[deadline.as_millis() as usize].push(key as u32);
        records.push(Record { deadline: deadline.as_nanos() as u64, pending: 1 });
    }
    let mut fired = 0;
    let watch = Stopwatch::start();
    for (ms, bucket) in buckets.iter().enumerate() {
        let end = (ms as u64 + 1) * 1_000_000;
        for &key in black_box(bucket) {
            if with_records {
                let record = &mut records[key as usize];
                if record.deadline > end {
                    continue;
                }
                record.pending = 0;
            }
            black_box(key);
            fired += 1;
        }
    }
    let took = watch.elapsed();
    assert_eq!((fired, records.len()), (deadlines.len(), deadlines.len()));
    took.as_nanos() as f64 / fired as f64
}
