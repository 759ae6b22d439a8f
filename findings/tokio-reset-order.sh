#!/usr/bin/env bash
# tokio 1.54.1: a `Sleep` that is reset to a later time stays in the slot of its old deadline, and
# takes its place among equal deadlines only when that slot has passed. So of two sleeps until
# 10 ms, the one that was reset first ends last, if its old deadline lies before; a new sleep keeps
# its place.
# Guessed before the run: equal deadlines end in the order in which they were set.
. "$(dirname "$0")/lib.sh"
rust 'tokio = { version = "=1.54.1", features = ["rt", "time", "test-util"] }' <<'RUST'
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Wake for Named {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

fn main() {
    for first in [10, 5] {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(async {
            let woken = Arc::new(Mutex::new(Vec::new()));
            let waker = |name| Waker::from(Arc::new(Named(name, woken.clone())));
            let poll = |sleep: &mut Pin<Box<Sleep>>, waker: &Waker| {
                let _ = sleep.as_mut().poll(&mut Context::from_waker(waker));
            };
            let end = Instant::now() + Duration::from_millis(10);
            let mut reset = Box::pin(sleep(Duration::from_millis(first)));
            poll(&mut reset, &waker("the first"));
            reset.as_mut().reset(end);
            let mut new = Box::pin(tokio::time::sleep_until(end));
            poll(&mut new, &waker("the second"));
            sleep(Duration::from_millis(20)).await;
            poll_fn(|_| Poll::Ready(())).await;
            println!("first set to {first} ms: {:?}", woken.lock().unwrap());
        });
    }
}
RUST
seen <<'SEEN'
first set to 10 ms: ["the first", "the second"]
first set to 5 ms: ["the second", "the first"]
SEEN
