//! A sleeper as many programs have it: a heap, and one absolute sleep with the least slack that
//! the kernel grants.

use super::Sleeper;
use crate::latency::{Recorder, measured_in_thread, next_delay};
use crate::random::Random;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const SLEEPER: Sleeper = ("heap and one absolute sleep, 1 ns timer slack", |count, run| {
    measured_in_thread(count, run, drive)
});

fn drive(count: usize, recorder: &Arc<Mutex<Recorder>>, stop: &AtomicBool) {
    set_current_timer_slack(NonZeroU64::new(1)).expect("a thread may reduce its slack");
    let mut randoms: Vec<Random> = (0..count).map(|nth| Random::seeded(nth as u64)).collect();
    let start = Instant::now();
    let mut heap: BinaryHeap<Reverse<(Instant, usize)>> =
        (0..count).map(|nth| Reverse((start, nth))).collect();
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let Some(&Reverse((due, nth))) = heap.peek() else { return };
        if due > now {
            sleep_until(due, now);
            continue;
        }
        heap.pop();
        recorder.lock().expect("nothing panics under this lock").note(due, Instant::now());
        heap.push(Reverse((Instant::now() + next_delay(&mut randoms[nth]), nth)));
    }
}

fn sleep_until(due: Instant, now: Instant) {
    let system = clock_gettime(ClockId::Monotonic);
    let until = Duration::new(system.tv_sec as u64, system.tv_nsec as u32) + (due - now);
    let until =
        Timespec { tv_sec: until.as_secs() as i64, tv_nsec: i64::from(until.subsec_nanos()) };
    // The caller checks the time again after an early or late wakeup.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}
