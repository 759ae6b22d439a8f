#!/usr/bin/env bash
# minstant 0.1.7, and its successor fastant 0.1.11: a program that only has one of them linked in
# uses some 10 ms of CPU time before `main`, at each start, whether it reads their clock or not. The
# counter is calibrated in a constructor of the library.
# Guessed before the run: calibrated at the first reading.
. "$(dirname "$0")/lib.sh"
rust 'minstant = "=0.1.7"' 'fastant = "=0.1.11"' <<'RUST'
use std::time::Duration;

// CPU time of this process so far, by the kernel's count.
fn used() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn main() {
    let used = used();
    // Named, so that they are linked; never called.
    if std::env::args().count() > 9 {
        println!("{:?} {:?}", minstant::Instant::now(), fastant::Instant::now());
    }
    println!("CPU time before main: 5 ms or more: {}", used >= Duration::from_millis(5));
}
RUST
seen <<'SEEN'
CPU time before main: 5 ms or more: true
SEEN
