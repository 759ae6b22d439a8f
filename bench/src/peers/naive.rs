//! A sleeper that many would write by themselves: a heap, and one absolute sleep with as little
//! slack as the kernel grants.

use super::Sleeper;
use crate::latency::{Latencies, Recorder, Watch, next_delay};
use crate::random::Random;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const SLEEPER: Sleeper =
    Sleeper { name: "heap and one absolute sleep, 1 ns timer slack", run: run_sleepers };

fn run_sleepers(count: usize, run: Duration) -> Latencies {
    let recorder = Recorder::shared();
    let stop = Arc::new(AtomicBool::new(false));
    let thread = {
        let (recorder, stop) = (Arc::clone(&recorder), Arc::clone(&stop));
        std::thread::spawn(move || drive(count, &recorder, &stop))
    };
    let watch = Watch::warmed_up(&recorder);
    std::thread::sleep(run);
    let latencies = watch.finish(&recorder);
    stop.store(true, Ordering::Relaxed);
    thread.join().expect("the sleeper ended");
    latencies
}

fn drive(count: usize, recorder: &Mutex<Recorder>, stop: &AtomicBool) {
    set_current_timer_slack(NonZeroU64::new(1)).expect("a thread may sharpen its sleeps");
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
    // Woken early or late, the caller looks again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}
