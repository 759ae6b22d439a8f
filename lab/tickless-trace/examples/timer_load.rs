//! A load on the kernel's timers at a fixed rate, for recordings and measurements. Sleeping threads
//! use precise timers; connections over loopback use coarse ones: each exchange arms and cancels
//! retransmissions, delayed acknowledgements and the readers' timeouts. Two threads share
//! `REARMS` rearms a second of a pending timer, each of which the kernel records as two events.
//!
//! Absolute times fix the rate, so that a recording, which slows a run down, does not change the
//! amount of work (`ci/project-perf.sh`). Usage:
//! `timer_load SECONDS [SLEEPERS [CONNECTIONS [REARMS]]]`
#![allow(clippy::print_stdout, reason = "a program to be run by hand")]
#![allow(clippy::disallowed_methods, reason = "sleeping is the load")]

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The time between two rounds of a thread.
const PERIOD: Duration = Duration::from_millis(1);

/// Longer than any exchange takes, so it never expires.
const TIMEOUT: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let usage = |_| "usage: timer_load SECONDS [SLEEPERS [CONNECTIONS [REARMS]]]";
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<u32>());
    let seconds = number(1).map_err(usage)?;
    let sleepers = number(8).map_err(usage)?;
    let connections = number(4).map_err(usage)?;
    let rearms = number(0).map_err(usage)?;
    let ends = Instant::now() + Duration::from_secs(seconds.into());
    let rearmers = if rearms == 0 { 0 } else { 2 };
    let threads = sleepers + connections + rearmers;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut pairs = Vec::new();
    for _ in 0..connections {
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        for side in [&client, &server] {
            side.set_nodelay(true)?;
            side.set_read_timeout(Some(TIMEOUT))?;
        }
        pairs.push((client, server));
    }
    let rounds: u64 = thread::scope(|scope| {
        let mut running = Vec::new();
        for sleeper in 0..sleepers {
            running.push(scope.spawn(move || every(ends, PERIOD * sleeper / threads, || Ok(()))));
        }
        for _ in 0..rearmers {
            running.push(scope.spawn(move || rearm(ends, rearms / rearmers / 1_000)));
        }
        for (pair, (mut client, mut server)) in (sleepers..).zip(pairs) {
            scope.spawn(move || {
                let mut byte = [0];
                // It ends when the client disconnects.
                while server.read_exact(&mut byte).and_then(|()| server.write_all(&byte)).is_ok() {}
            });
            running.push(scope.spawn(move || {
                every(ends, PERIOD * pair / threads, || {
                    client.write_all(&[1])?;
                    client.read_exact(&mut [0])
                })
            }));
        }
        let join = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
        };
        running.into_iter().map(join).sum::<io::Result<u64>>()
    })?;
    let wanted = u64::from(threads * seconds) * PERIOD.as_secs_f64().recip() as u64;
    println!("{rounds} rounds of {wanted}");
    Ok(())
}

/// Runs an action in each period, at an offset from the period's beginning. Returns how often.
fn every(
    ends: Instant,
    phase: Duration,
    mut round: impl FnMut() -> io::Result<()>,
) -> io::Result<u64> {
    let mut next = Instant::now() + phase;
    let mut rounds = 0;
    while next < ends {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        round()?;
        rounds += 1;
        next += PERIOD;
    }
    Ok(rounds)
}

/// Arms a pending timer `count` times in each period. Returns the number of periods.
fn rearm(ends: Instant, count: u32) -> io::Result<u64> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let it_value = Timespec { tv_sec: 100, tv_nsec: 0 };
    let deadline = Itimerspec { it_interval: Timespec::default(), it_value };
    every(ends, Duration::ZERO, || {
        for _ in 0..count {
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &deadline)?;
        }
        Ok(())
    })
}
