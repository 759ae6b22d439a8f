#!/usr/bin/env bash
# leaky-bucket 1.1.2 with `fair(false)`: while two threads call `try_acquire` of one limiter at its
# limit of 10,000 permits a second, all permits get lost, mostly within a tenth of a second. Then
# every call is refused, although time goes on adding permits. With `fair(true)`, the default, the
# threads get what was promised.
# Guessed before the run: some calls at the same time are refused, and no permit gets lost.
. "$(dirname "$0")/lib.sh"
rust 'leaky-bucket = "=1.1.2"' <<'RUST'
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    for fair in [true, false] {
        let refill = Duration::from_millis(1);
        let limiter = leaky_bucket::RateLimiter::builder()
            .initial(0)
            .max(100)
            .refill(10)
            .interval(refill)
            .fair(fair)
            .build();
        let begun = Instant::now();
        let take = || {
            let is_on = || begun.elapsed() < Duration::from_secs(10);
            let calls = std::iter::from_fn(|| is_on().then(|| limiter.try_acquire(1)));
            calls.filter(|taken| *taken).count()
        };
        let taken: usize = thread::scope(|scope| {
            let threads = [scope.spawn(take), scope.spawn(take)];
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        });
        thread::sleep(100 * refill);
        println!("fair({fair}): took most of 100,000: {}", taken > 50_000);
        println!("after 100 more refills, another one: {}", limiter.try_acquire(1));
    }
}
RUST
seen <<'SEEN'
fair(true): took most of 100,000: true
after 100 more refills, another one: true
fair(false): took most of 100,000: false
after 100 more refills, another one: false
SEEN
