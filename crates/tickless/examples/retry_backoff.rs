//! A retry policy, and a test of it that takes hours of virtual time and none of yours.
//!
//! The policy tries something until it works: again after a second, then two, then four, at
//! most every five minutes, and gives up after a day. It takes [`Timers`] and does not care
//! whether their clock is a real one.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless::{HrTimer, Ns, StartError, Timers, VirtualTime};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(86_400);

/// Tries until `attempt` returns true or a day has passed. Dropping it stops it.
struct Retry {
    _timer: HrTimer,
}

impl Retry {
    fn start(
        timers: &Timers,
        mut attempt: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Retry, StartError> {
        let (give_up, mut pause) = (timers.now() + DAY, FIRST);
        let timer = timers.hrtimer(move |fired| {
            if attempt() || fired.now() + pause > give_up {
                return;
            }
            fired.restart(pause);
            pause = (pause * 2).min(LONGEST);
        });
        timer.start(Duration::ZERO)?;
        Ok(Retry { _timer: timer })
    }
}

/// When each attempt is made, if the `works`-th works.
fn attempts(time: &Arc<VirtualTime>, works: usize) -> (Retry, Arc<Mutex<Vec<Duration>>>) {
    let (begin, made) = (time.now(), Arc::new(Mutex::new(Vec::new())));
    let (log, clock) = (Arc::clone(&made), Arc::clone(time));
    let retry = Retry::start(time.timers(), move || {
        let mut log = log.lock().expect("no attempt panics");
        log.push(clock.now() - begin);
        log.len() == works
    });
    (retry.expect("the timer has not been shut down"), made)
}

fn main() {
    // It works the fifth time.
    let time = Arc::new(VirtualTime::new());
    let (_retry, made) = attempts(&time, 5);
    time.advance(DAY * 2);
    assert_eq!(*made.lock().unwrap(), [0, 1, 3, 7, 15].map(Duration::from_secs));

    // It never works: the pauses grow to five minutes and no longer, and end after a day.
    let time = Arc::new(VirtualTime::with(Timers::builder().bases(4), Ns::from_secs(1)));
    let (_retry, made) = attempts(&time, usize::MAX);
    time.advance(DAY * 2);
    let made = made.lock().unwrap().clone();
    let pauses: Vec<Duration> = made.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses[..9], [1, 2, 4, 8, 16, 32, 64, 128, 256].map(Duration::from_secs));
    assert!(pauses[9..].iter().all(|&pause| pause == LONGEST));
    assert!(made.last().is_some_and(|&last| last <= DAY && last + LONGEST > DAY));
    assert_eq!(time.next_event(), None, "it has given up");

    // Dropping it stops it.
    let time = Arc::new(VirtualTime::new());
    let (retry, made) = attempts(&time, usize::MAX);
    time.advance(Duration::from_secs(10));
    drop(retry);
    time.advance(DAY);
    assert_eq!(made.lock().unwrap().len(), 4);
    println!("five days of retries, {} attempts in one of them", pauses.len() + 1);
}
