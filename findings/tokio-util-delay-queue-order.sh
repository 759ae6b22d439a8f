#!/usr/bin/env bash
# tokio-util 0.7.20: `DelayQueue` returns entries with the same deadline in reverse order of their
# insertion, and in order of insertion if another entry expired shortly before them. Sleeps of tokio
# itself that are equal end in the order in which they were polled first.
# Guessed before the run: equal deadlines come out in order of insertion, as from a queue.
. "$(dirname "$0")/lib.sh"
rust 'tokio = { version = "=1.54.1", features = ["rt", "time", "test-util"] }' \
  'tokio-util = { version = "=0.7.20", features = ["time"] }' 'futures-util = "=0.3.31"' <<'RUST'
use futures_util::StreamExt;
use std::time::Duration;
use tokio_util::time::DelayQueue;

async fn order(millis: &[u64]) -> Vec<usize> {
    let mut queue = DelayQueue::new();
    for (entry, millis) in millis.iter().enumerate() {
        queue.insert(entry, Duration::from_millis(*millis));
    }
    queue.map(|expired| expired.into_inner()).collect().await
}

fn main() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(async {
        println!("10 10 10 10 ms: {:?}", order(&[10, 10, 10, 10]).await);
        println!("100 70 100 90 ms: {:?}", order(&[100, 70, 100, 90]).await);
    });
}
RUST
seen <<'SEEN'
10 10 10 10 ms: [3, 2, 1, 0]
100 70 100 90 ms: [1, 3, 0, 2]
SEEN
