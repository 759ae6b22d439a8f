//! The workers, on Linux: only there can a program read the CPU time of a thread.

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;
use tickless::Timers;
use tickless::bandwidth::{AcquireError, Throttle};

const PIECES: u64 = 200;

/// About a quarter of a millisecond.
fn piece_of_work() {
    for n in 0..1_000_000u64 {
        black_box(n);
    }
}

/// Does its pieces of work, and returns how often it had to wait.
fn work(throttle: &Throttle) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let mut worker = throttle.join()?;
    let mut waited = 0;
    for _ in 0..PIECES {
        piece_of_work();
        waited += u64::from(worker.check()?);
    }
    Ok(waited)
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let timers = Timers::process()?;
    let throttle =
        timers.throttle(Duration::from_millis(25), Duration::from_millis(100)).start()?;
    let waited = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| work(&throttle)));
        threads.map(|thread| {
            thread.join().map_err(|_| "a worker panicked")?.map_err(|e| e.to_string())
        })
    });
    for waited in waited {
        println!("a worker did {PIECES} pieces and waited {} times", waited?);
    }
    let counts = throttle.counts();
    println!("together they used {} ms of CPU time", counts.used / 1_000_000);

    // A rate limit on these timers: five permits in 20 ms.
    let limiter = timers.limiter(5, Duration::from_millis(20)).start()?;
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..8 {
        match limiter.try_acquire(1) {
            Ok(()) => taken += 1,
            Err(AcquireError::Empty) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    println!("of 8 requests at once {taken} were let through and {refused} were not");
    Ok(())
}
