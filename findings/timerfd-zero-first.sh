#!/usr/bin/env bash
# Wrappers of Linux's timerfd, asked for a period of 10 ms whose first expiry is after no time, and
# for one expiry after no time. timerfd 1.6.0 and nix 0.30.1 pass the zero on to the kernel, for
# which it means "off", although the first has a state `Disarmed` of its own: in 100 ms, none
# expires, and no call fails. tokio-timerfd 0.2.0 has its first tick at once.
# Guessed before the run: at once, or refused; nowhere silently never.
. "$(dirname "$0")/lib.sh"
rust 'timerfd = "=1.6.0"' 'nix = { version = "=0.30.1", features = ["fs", "time"] }' \
  'tokio = { version = "=1.54.1", features = ["macros", "rt", "net", "time"] }' \
  'tokio-timerfd = "=0.2.0"' 'futures-util = "=0.3.31"' <<'RUST'
use futures_util::StreamExt;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd as of_nix;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use timerfd::{ClockId, SetTimeFlags, TimerFd, TimerState};

const PERIOD: Duration = Duration::from_millis(10);

fn wait() {
    std::thread::sleep(PERIOD * 10);
}

fn main() {
    let mut timer = TimerFd::new_custom(ClockId::Monotonic, true, false).unwrap();
    for (name, state) in [
        ("Periodic", TimerState::Periodic { current: Duration::ZERO, interval: PERIOD }),
        ("Oneshot", TimerState::Oneshot(Duration::ZERO)),
    ] {
        timer.set_state(state, SetTimeFlags::Default);
        wait();
        println!("timerfd, {name}: {} expiries", timer.read());
    }
    let (clock, flags) = (of_nix::ClockId::CLOCK_MONOTONIC, of_nix::TimerFlags::TFD_NONBLOCK);
    let timer = of_nix::TimerFd::new(clock, flags).unwrap();
    let (zero, period) = (TimeSpec::nanoseconds(0), TimeSpec::milliseconds(10));
    for (name, expiration) in [
        ("IntervalDelayed", of_nix::Expiration::IntervalDelayed(zero, period)),
        ("OneShot", of_nix::Expiration::OneShot(zero)),
    ] {
        timer.set(expiration, of_nix::TimerSetTimeFlags::empty()).unwrap();
        wait();
        let expired = nix::unistd::read(timer.as_fd(), &mut [0; 8]).is_ok();
        println!("nix, {name}: expired: {expired}");
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let mut interval = tokio_timerfd::Interval::new(Instant::now(), PERIOD).unwrap();
        let tick = tokio::time::timeout(Duration::from_secs(1), interval.next()).await;
        println!("tokio-timerfd, Interval: expired: {}", tick.is_ok());
    });
}
RUST
seen <<'SEEN'
timerfd, Periodic: 0 expiries
timerfd, Oneshot: 0 expiries
nix, IntervalDelayed: expired: false
nix, OneShot: expired: false
tokio-timerfd, Interval: expired: true
SEEN
