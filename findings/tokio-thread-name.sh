#!/usr/bin/env bash
# tokio 1.54.1: `Builder::thread_name_fn` is called by the thread that starts another one, before
# that one exists: the first closure of `spawn_blocking` runs it in the caller. `on_thread_park` is
# not called for a thread that waits in `Handle::block_on`, although it parks.
# Guessed before the run: the name is asked for in the new thread; every park is reported.
. "$(dirname "$0")/lib.sh"
rust 'tokio = { version = "=1.54.1", features = ["rt-multi-thread", "time"] }' <<'RUST'
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{ThreadId, current};
use std::time::Duration;

static NAMED_BY: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
static PARKS_HERE: AtomicUsize = AtomicUsize::new(0);

fn main() {
    let caller = current().id();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .thread_name_fn(|| {
            NAMED_BY.lock().unwrap().push(current().id());
            "named".to_string()
        })
        .on_thread_park(move || {
            PARKS_HERE.fetch_add(usize::from(current().id() == caller), Ordering::Relaxed);
        })
        .build()
        .unwrap();
    let started = NAMED_BY.lock().unwrap().len();
    runtime.handle().spawn_blocking(|| ());
    let named_by = NAMED_BY.lock().unwrap().clone();
    println!("names asked for by the caller: {}", named_by.iter().all(|id| *id == caller));
    println!("one more for the blocking thread: {}", named_by.len() == started + 1);
    runtime.handle().block_on(async { tokio::time::sleep(Duration::from_millis(20)).await });
    println!("parks reported in Handle::block_on: {}", PARKS_HERE.load(Ordering::Relaxed));
}
RUST
seen <<'SEEN'
names asked for by the caller: true
one more for the blocking thread: true
parks reported in Handle::block_on: 0
SEEN
