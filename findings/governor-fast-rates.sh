#!/usr/bin/env bash
# governor 0.10.1 on its fake clock, with rates such as those of bytes: what comes back in 100 ms. A
# unit takes whole nanoseconds, rounded down: 300 million per second are 333 million, and 600
# million are 1,000 million, two thirds more than the limit.
# Guessed before the run: within a percent of the rate.
. "$(dirname "$0")/lib.sh"
rust 'governor = "=0.10.1"' <<'RUST'
use governor::{Quota, RateLimiter, clock::FakeRelativeClock};
use std::num::NonZeroU32;
use std::time::Duration;

fn main() {
    for rate in [3_000_000, 125_000_000, 300_000_000, 600_000_000, 950_000_000] {
        let all = NonZeroU32::new(rate).unwrap();
        let clock = FakeRelativeClock::default();
        let limiter = RateLimiter::direct_with_clock(Quota::per_second(all), clock.clone());
        limiter.check_n(all).unwrap().unwrap();
        clock.advance(Duration::from_millis(100));
        let granted = |part: u32| {
            let units = NonZeroU32::new((u64::from(rate) * u64::from(part) / 1000) as u32).unwrap();
            limiter.check_n(units).unwrap().is_ok()
        };
        let most = (1..1000).rev().find(|&part| granted(part)).unwrap();
        println!("{rate} per s: {:.1} % of a second's in 100 ms", f64::from(most) / 10.0);
    }
}
RUST
seen <<'SEEN'
3000000 per s: 10.0 % of a second's in 100 ms
125000000 per s: 10.0 % of a second's in 100 ms
300000000 per s: 11.1 % of a second's in 100 ms
600000000 per s: 16.6 % of a second's in 100 ms
950000000 per s: 10.5 % of a second's in 100 ms
SEEN
