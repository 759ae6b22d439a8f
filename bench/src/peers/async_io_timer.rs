//! async-io's `Timer`: a B-tree behind a mutex, a queue of operations before it, and a thread
//! that drives them when no executor does.

use super::{Sleeper, sleep_again_and_again};
use crate::latency::{Recorder, measured_in_thread};
use async_io::Timer;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

/// Starts its thread, which must not be pinned to a CPU that is measured.
pub fn warm_up() {
    let mut timer = Timer::after(Duration::from_millis(1));
    let _ = Pin::new(&mut timer).poll(&mut Context::from_waker(Waker::noop()));
}

pub const SLEEPER: Sleeper =
    ("async-io `Timer`, 1 thread", |count, run| measured_in_thread(count, run, drive));

fn drive(count: usize, recorder: &Arc<Mutex<Recorder>>, stop: &AtomicBool) {
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
