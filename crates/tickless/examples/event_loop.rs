//! Timers inside an event loop of one's own: no threads, no locks, no callbacks.
//!
//! The loop polls a pipe and asks [`LocalTimers`] how long it may wait. Each line that comes in
//! pushes an idle timeout out; a heartbeat keeps its pace by itself. The other end of the pipe
//! says something a few times, then falls silent, and the timeout ends the program.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::time::Duration;
use tickless::{LocalTimers, Ns};

const IDLE: Duration = Duration::from_millis(100);
const HEARTBEAT: Duration = Duration::from_millis(10);

/// What the timers are for.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Timer {
    Idle,
    Heartbeat,
}

/// The loop's clock. Any will do that does not go back.
fn now() -> Ns {
    let now = clock_gettime(ClockId::Monotonic);
    Ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// How long to wait from `now` until `then`; `None`: until something happens.
fn timeout(now: Ns, then: Ns) -> Option<Timespec> {
    let wait = then.since(now);
    (then != Ns::NEVER).then_some(Timespec {
        tv_sec: (wait.0 / 1_000_000_000) as i64,
        tv_nsec: (wait.0 % 1_000_000_000) as i64,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut reader, mut writer) = std::io::pipe()?;
    let peer = std::thread::spawn(move || {
        for _ in 0..5 {
            writer.write_all(b"hello\n")?;
            std::thread::sleep(Duration::from_millis(20));
        }
        // Not closed, just silent.
        Ok::<_, std::io::Error>(writer)
    });

    let begin = now();
    let mut timers = LocalTimers::new(begin);
    // Coarse, as it is pushed out all the time and hardly ever fires; and a precise one.
    let idle = timers.insert(Timer::Idle)?;
    let heartbeat = timers.insert_precise(Timer::Heartbeat)?;
    timers.start(idle, IDLE)?;
    let mut next_beat = begin + HEARTBEAT;
    timers.start_at(heartbeat, next_beat)?;

    let (mut heard, mut beats, mut last_heard) = (0, 0, begin);
    let mut is_done = false;
    while !is_done {
        let mut fds = [PollFd::new(&reader, PollFlags::IN)];
        let ready = poll(&mut fds, timeout(now(), timers.next_event()).as_ref())?;
        let now = now();
        // First the time, so that what is armed below is armed from the present.
        timers.advance(now, |timers, key| match timers.value(key) {
            Some(Timer::Heartbeat) => {
                beats += 1;
                // From beat to beat, not from now: it does not drift.
                next_beat = next_beat + HEARTBEAT;
                timers.start_at(key, next_beat).expect("the key is its own");
            }
            _ => is_done = true,
        });
        if ready > 0 && !is_done {
            let mut bytes = [0; 64];
            heard += reader.read(&mut bytes)?;
            last_heard = now;
            timers.start(idle, IDLE)?;
        }
    }

    let silence = now() - last_heard;
    println!("heard {heard} bytes and {beats} beats; silent for {silence:?}");
    assert!(silence >= IDLE, "never early");
    // No beat was early, and none was lost: the next one is the first that has not come.
    assert_eq!(next_beat, begin + HEARTBEAT * (beats + 1));
    assert!(beats > 0 && HEARTBEAT * beats <= now() - begin);
    assert_eq!(timers.remove(idle), Some(Timer::Idle));
    assert_eq!((timers.remove(heartbeat), timers.pending()), (Some(Timer::Heartbeat), 0));
    drop(peer.join());
    Ok(())
}
