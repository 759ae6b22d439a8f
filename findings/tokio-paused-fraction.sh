#!/usr/bin/env bash
# tokio 1.54.1, paused clock: after one `advance` by a fraction of a millisecond, every later sleep
# of whole milliseconds takes one more, for as long as the clock stays paused: sleeps end at whole
# milliseconds since the start of the runtime, but the clock then moves by whole milliseconds, and
# so keeps its fraction. Of an interval, only the first tick is late.
# Guessed before the run: at most the first sleep is longer; it ends at a whole millisecond, and
# those after it are exact.
. "$(dirname "$0")/lib.sh"
rust 'tokio = { version = "=1.54.1", features = ["rt", "time", "test-util"] }' <<'RUST'
use std::time::Duration;
use tokio::time::{Instant, advance, interval, sleep};

const PERIOD: Duration = Duration::from_millis(10);

fn main() {
    for micros in [0, 300] {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(async {
            advance(Duration::from_micros(micros)).await;
            let (start, mut sleeps, mut ticks) = (Instant::now(), Vec::new(), Vec::new());
            for _ in 0..4 {
                sleep(PERIOD).await;
                sleeps.push(start.elapsed().as_millis());
            }
            let (start, mut interval) = (Instant::now(), interval(PERIOD));
            for _ in 0..4 {
                interval.tick().await;
                ticks.push(start.elapsed().as_millis());
            }
            println!("after advance({micros} us): sleeps {sleeps:?}, interval {ticks:?} ms");
        });
    }
}
RUST
seen <<'SEEN'
after advance(0 us): sleeps [10, 20, 30, 40], interval [0, 10, 20, 30] ms
after advance(300 us): sleeps [11, 22, 33, 44], interval [1, 11, 21, 31] ms
SEEN
