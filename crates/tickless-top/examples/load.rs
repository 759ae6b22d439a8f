//! Arms timers at a steady rate, to measure what `tickless top` costs at it.
//!
//! ```sh
//! cargo run --release -p tickless-top --example load -- 100000 30 &   # events a second, seconds
//! sudo target/release/tickless top --once -i 10s --source ebpf
//! sudo target/release/tickless top --once -i 10s --source tracefs
//! ```

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

/// One thread for each of two CPUs.
const THREADS: u64 = 2;

/// The interval in which each thread does its share.
const STEP: Duration = Duration::from_millis(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let rate: u64 = args.next().map_or(Ok(1_000), |rate| rate.parse())?;
    let seconds: u64 = args.next().map_or(Ok(1), |seconds| seconds.parse())?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let threads: Vec<_> = (0..THREADS).map(|_| thread::spawn(move || arm(rate, end))).collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    Ok(())
}

/// Arms a pending timer repeatedly: the kernel records a cancel and a start each time.
fn arm(rate: u64, end: Instant) -> rustix::io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let ahead = Timespec { tv_sec: 100, tv_nsec: 0 };
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let deadline = Itimerspec { it_interval: never, it_value: ahead };
    let start = Instant::now();
    let mut armed = 0;
    while Instant::now() < end {
        // A late step arms the timers of the steps it missed.
        let due = start.elapsed().as_micros() as u64 * rate / 2 / THREADS / 1_000_000;
        while armed < due {
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &deadline)?;
            armed += 1;
        }
        thread::park_timeout(STEP);
    }
    Ok(())
}
