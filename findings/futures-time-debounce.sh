#!/usr/bin/env bash
# futures-time 3.1.0: `Stream::debounce` looks at its stream again only when its timer ends, so a
# burst of n items takes n times the pause: five items at once and a pause of 30 ms take 150 ms.
# Guessed before the run: 30 ms after the last item.
. "$(dirname "$0")/lib.sh"
rust 'futures-time = "=3.1.0"' 'futures-lite = "=2.6.1"' <<'RUST'
use futures_lite::{StreamExt, future::block_on, stream};
use futures_time::{prelude::*, time::Duration};
use std::time::Instant;

fn main() {
    for items in [1, 5] {
        let burst = stream::iter(0..items).chain(stream::pending());
        let mut debounced = Box::pin(burst.debounce(Duration::from_millis(30)));
        let start = Instant::now();
        let last = block_on(debounced.next());
        let pauses = start.elapsed().as_millis() / 30;
        println!("{items} at once: {last:?} after {pauses} pauses");
    }
}
RUST
seen <<'SEEN'
1 at once: Some(0) after 1 pauses
5 at once: Some(4) after 5 pauses
SEEN
