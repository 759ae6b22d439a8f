#!/usr/bin/env bash
# async-std 1.13.2 and async-io 2.6.0, on which it is built: after nine periods in which nobody
# polls, async-std's `stream::interval` has one tick, and counts its next period from that poll, so
# that each late poll delays all later ticks. async-io's `Timer::interval` has all nine ticks at
# once, and keeps its times. Neither documentation says which.
# Guessed before the run: the same in both.
. "$(dirname "$0")/lib.sh"
rust 'async-std = { version = "=1.13.2", features = ["unstable"] }' 'async-io = "=2.6.0"' \
  'futures-lite = "=2.6.1"' <<'RUST'
use futures_lite::{Stream, StreamExt, future};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(100);

async fn at_once(name: &str, mut ticks: impl Stream + Unpin) {
    ticks.next().await;
    let begun = Instant::now();
    std::thread::sleep(PERIOD * 9 + PERIOD / 2);
    let mut ready = 0;
    while future::poll_once(ticks.next()).await.is_some() {
        ready += 1;
    }
    ticks.next().await;
    let after = begun.elapsed() > PERIOD * 10 + PERIOD / 4;
    let all = ready > 5;
    println!("{name}: at once one: {}, nearly all: {all}; then a period: {after}", ready == 1);
}

fn main() {
    let async_std = async_std::stream::interval(PERIOD);
    async_std::task::block_on(at_once("async-std", async_std));
    let async_io = async_io::Timer::interval(PERIOD);
    future::block_on(at_once("async-io", async_io));
}
RUST
seen <<'SEEN'
async-std: at once one: true, nearly all: false; then a period: true
async-io: at once one: false, nearly all: true; then a period: false
SEEN
