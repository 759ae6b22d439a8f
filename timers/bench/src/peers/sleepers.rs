//! Sleepers of one thread. async-io's `Timer` is a B-tree behind a mutex, a queue of operations
//! before it, and a thread that drives them when no executor does. The other is a sleeper as many
//! programs have it: a heap, and one sleep with the least slack that the kernel grants.

use super::{Sleeper, sleep_again_and_again};
use crate::latency::{Recorder, measured_in_thread, next_delay};
use crate::random::Random;
use async_io::Timer;
use rustix::thread::set_current_timer_slack;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// Starts the thread of async-io, which must not be pinned to a CPU that is measured.
pub fn warm_up() {
    let mut timer = Timer::after(Duration::from_millis(1));
    let _ = Pin::new(&mut timer).poll(&mut Context::from_waker(Waker::noop()));
}

pub const ASYNC_IO: Sleeper =
    ("async-io `Timer`, 1 thread", |count, run| measured_in_thread(count, run, drive_async_io));

fn drive_async_io(count: usize, recorder: &Arc<Mutex<Recorder>>, stop: &AtomicBool) {
    let executor = async_executor::LocalExecutor::new();
    for nth in 0..count {
        let recorder = Arc::clone(recorder);
        executor.spawn(sleep_again_and_again(nth, recorder, Timer::at)).detach();
    }
    async_io::block_on(executor.run(async {
        while !stop.load(Ordering::Relaxed) {
            Timer::after(Duration::from_millis(20)).await;
        }
    }));
}

pub const NAIVE: Sleeper = ("heap and one sleep, 1 ns timer slack", |count, run| {
    measured_in_thread(count, run, drive_heap)
});

fn drive_heap(count: usize, recorder: &Arc<Mutex<Recorder>>, stop: &AtomicBool) {
    set_current_timer_slack(NonZeroU64::new(1)).expect("a thread may reduce its slack");
    let mut randoms: Vec<Random> = (0..count).map(|nth| Random::seeded(nth as u64)).collect();
    let start = Instant::now();
    let mut heap: BinaryHeap<Reverse<(Instant, usize)>> =
        (0..count).map(|nth| Reverse((start, nth))).collect();
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let Some(&Reverse((due, nth))) = heap.peek() else { return };
        if due > now {
            std::thread::sleep(due - now);
            continue;
        }
        heap.pop();
        recorder.lock().expect("nothing panics under this lock").note(due, Instant::now());
        heap.push(Reverse((Instant::now() + next_delay(&mut randoms[nth]), nth)));
    }
}
