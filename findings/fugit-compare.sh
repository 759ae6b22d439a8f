#!/usr/bin/env bash
# fugit 0.6.0: two durations in different units of `u32` are compared in the finer one, and if the
# coarser does not fit, neither is greater: 4,295 s in milliseconds are not more than 1 s in
# microseconds, so a check `elapsed > timeout` is false again after 71 minutes. `convert` rounds to
# the nearest, so 1,500 us are 2 ms.
# Guessed before the run: a right comparison, and a conversion that rounds down, like `std`'s.
. "$(dirname "$0")/lib.sh"
rust 'fugit = "=0.6.0"' <<'RUST'
use fugit::{MicrosDurationU32, MillisDurationU32};

fn main() {
    let timeout = MicrosDurationU32::from_ticks(1_000_000);
    for millis in [2_000, 4_294_000, 4_295_000] {
        let elapsed = MillisDurationU32::from_ticks(millis);
        print!("{millis} ms > 1 s: {}; ", elapsed > timeout);
        println!("< 1 s: {}; == 1 s: {}", elapsed < timeout, elapsed == timeout);
    }
    let micros = MicrosDurationU32::from_ticks(1_500);
    let millis: MillisDurationU32 = micros.convert();
    println!("1500 us: {millis}");
}
RUST
seen <<'SEEN'
2000 ms > 1 s: true; < 1 s: false; == 1 s: false
4294000 ms > 1 s: true; < 1 s: false; == 1 s: false
4295000 ms > 1 s: false; < 1 s: false; == 1 s: false
1500 us: 2 ms
SEEN
