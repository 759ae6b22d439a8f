#!/usr/bin/env bash
# coarsetime 0.1.38: `Duration::from_millis` divides by 1,024, so that a millisecond is 976,562 ns,
# `from_millis(1).as_millis()` is 0, and 999 ms are 975 ms. A conversion from `std`'s duration is
# exact to a nanosecond.
# Guessed before the run: exact to the type's resolution, 2^-32 s.
. "$(dirname "$0")/lib.sh"
rust 'coarsetime = "=0.1.38"' <<'RUST'
use coarsetime::Duration;

fn main() {
    for millis in [1, 10, 999] {
        let made = Duration::from_millis(millis);
        let converted: Duration = std::time::Duration::from_millis(millis).into();
        print!("{millis} ms: from_millis {} ms, {} ns; ", made.as_millis(), made.as_nanos());
        println!("from std {} ns", converted.as_nanos());
    }
}
RUST
seen <<'SEEN'
1 ms: from_millis 0 ms, 976562 ns; from std 999999 ns
10 ms: from_millis 9 ms, 9765625 ns; from std 9999999 ns
999 ms: from_millis 975 ms, 975585937 ns; from std 998999999 ns
SEEN
