#!/usr/bin/env bash
# shuttle 0.9.10: no timeout ever passes. `recv_timeout` of no time at all on an empty channel waits
# for the sender and returns its value in each of 1,000 schedules, so a model of code with timeouts
# never takes the branch in which one has passed.
# Guessed before the run: both outcomes are explored.
. "$(dirname "$0")/lib.sh"
rust 'shuttle = "=0.9.10"' <<'RUST'
use shuttle::{sync::mpsc::channel, thread};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static RECEIVED: AtomicU32 = AtomicU32::new(0);
static PASSED: AtomicU32 = AtomicU32::new(0);

fn main() {
    let schedules = || {
        let (sender, receiver) = channel();
        let sending = thread::spawn(move || sender.send(()));
        let outcome = receiver.recv_timeout(Duration::ZERO);
        let count = if outcome.is_ok() { &RECEIVED } else { &PASSED };
        count.fetch_add(1, Ordering::Relaxed);
        let _ = sending.join();
    };
    shuttle::check_random(schedules, 1_000);
    println!("received {RECEIVED:?}, passed {PASSED:?}");
}
RUST
seen <<'SEEN'
received 1000, passed 0
SEEN
