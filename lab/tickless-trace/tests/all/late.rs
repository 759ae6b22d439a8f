//! Waits to run are those that another program finds in the same text.

use crate::support::{parsed, sample_text};
use std::collections::HashMap;
use tickless_core::time::Ns;
use tickless_trace::late::{Selection, explain};

/// Computes from the text of a trace, without its reader, how often and how long the threads waited
/// to run, as `runqlat` does.
fn waits_by_text(text: &str) -> (u64, u64) {
    let number = |text: &str| text.split(' ').next().unwrap().parse::<u64>().unwrap();
    let after = |line: &str, key: &str| line.split_once(key).map(|(_, rest)| number(rest));
    // When each thread became ready; 0 while it runs.
    let mut ready: HashMap<u64, u64> = HashMap::new();
    let (mut count, mut ns) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (before, event) = line.split_once(": ").unwrap();
        let (seconds, micros) = before.rsplit_once(' ').unwrap().1.split_once('.').unwrap();
        let at = number(seconds) * 1_000_000 + number(micros);
        if event.starts_with("sched_wakeup") {
            ready.entry(after(event, " pid=").unwrap()).or_insert(at);
        }
        if event.starts_with("sched_switch") {
            let previous = after(event, " prev_pid=").unwrap();
            match event.contains("prev_state=R") {
                true => ready.insert(previous, at),
                false => ready.remove(&previous),
            };
            let next = after(event, "next_pid=").unwrap();
            if let Some(since @ 1..) = ready.insert(next, 0)
                && next != 0
            {
                count += 1;
                ns += (at - since) * 1_000;
            }
        }
    }
    (count, ns)
}

/// Goal: waits to run are those that another program finds in the same text. A lost event in the
/// middle ends all waits.
#[test]
fn waits_are_those_of_the_text() {
    for name in ["pipe-two-cpus", "two-groups-aligned", "bursts"] {
        let text = sample_text(name);
        let waits = explain(&parsed(&text), Ns(0), &Selection::default()).waits;
        assert_eq!((waits.waits, waits.ns), waits_by_text(&text), "{name}");
        assert_eq!(waits.causes.iter().map(|share| share.ns).sum::<u64>(), waits.ns, "{name}");
    }
}
