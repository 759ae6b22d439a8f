//! The lateness of timers, and the CPU time and wakeups that they cost.

use crate::random::Random;
use crate::sample::process_time;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    pub early: u64,
    pub fired_per_s: f64,
    pub wakeups_per_s: f64,
    pub cpu_percent: f64,
}

#[derive(Default)]
pub struct Recorder {
    late: Vec<u64>,
    early: u64,
}

impl Recorder {
    pub fn shared() -> Arc<Mutex<Recorder>> {
        Arc::new(Mutex::new(Recorder { late: Vec::with_capacity(1 << 20), early: 0 }))
    }

    pub fn note(&mut self, due: Instant, now: Instant) {
        // Two clocks may differ by a microsecond; peers that fire early are off by 0.5 ms.
        self.early += u64::from(due.saturating_duration_since(now) > Duration::from_micros(1));
        self.late.push(now.saturating_duration_since(due).as_nanos() as u64);
    }
}

pub struct Watch {
    wall: Instant,
    cpu: Duration,
    wakeups: u64,
}

impl Watch {
    /// Waits for a moment, discards what was recorded so far, and begins.
    pub fn warmed_up(recorder: &Arc<Mutex<Recorder>>) -> Watch {
        std::thread::sleep(Duration::from_millis(50));
        let mut recorder = recorder.lock().expect("nothing panics under this lock");
        recorder.late.clear();
        recorder.early = 0;
        Watch { wall: Instant::now(), cpu: process_time(), wakeups: wakeups() }
    }

    pub fn finish(self, recorder: &Arc<Mutex<Recorder>>) -> Latencies {
        let wall = self.wall.elapsed().as_secs_f64();
        let cpu = process_time().saturating_sub(self.cpu).as_secs_f64();
        let wakeups = wakeups().saturating_sub(self.wakeups);
        let mut recorder = recorder.lock().expect("nothing panics under this lock");
        let early = recorder.early;
        let late = &mut recorder.late;
        late.sort_unstable();
        let at = |part: f64| {
            let place = ((late.len() as f64 - 1.0) * part).max(0.0) as usize;
            late.get(place).map_or(f64::NAN, |&ns| ns as f64 / 1e3)
        };
        Latencies {
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: at(1.0),
            early,
            fired_per_s: late.len() as f64 / wall,
            wakeups_per_s: wakeups as f64 / wall,
            cpu_percent: 100.0 * cpu / wall,
        }
    }
}

/// Starts timers and measures their latencies for this long. Keeps what `start` returns until then.
pub fn measured<T>(run: Duration, start: impl FnOnce(&Arc<Mutex<Recorder>>) -> T) -> Latencies {
    let recorder = Recorder::shared();
    let _started = start(&recorder);
    let watch = Watch::warmed_up(&recorder);
    std::thread::sleep(run);
    watch.finish(&recorder)
}

/// Measures the latencies of so many timers, which a thread drives until it is asked to stop.
pub fn measured_in_thread(
    count: usize,
    run: Duration,
    drive: fn(usize, &Arc<Mutex<Recorder>>, &AtomicBool),
) -> Latencies {
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let latencies = measured(run, |recorder| {
            let recorder = Arc::clone(recorder);
            scope.spawn(move || drive(count, &recorder, stop))
        });
        stop.store(true, Ordering::Relaxed);
        latencies
    })
}

pub fn next_delay(random: &mut Random) -> Duration {
    Duration::from_nanos(1_000_000 + random.below(9_000_000))
}

/// The number of voluntary context switches of this process: sleeps, each with a wakeup.
pub fn wakeups() -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    tasks.flatten().filter_map(|task| wakeups_of(&task.path())).sum()
}

/// The same of one thread, whose folder in `/proc` this is; `None` if it has ended.
pub fn wakeups_of(thread: &Path) -> Option<u64> {
    let status = std::fs::read_to_string(thread.join("status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
    line.split_whitespace().last()?.parse().ok()
}
