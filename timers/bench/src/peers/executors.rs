//! Executors of one thread, and their sleeps.

use super::tokio_sleep;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tickless::local::Clock;
use tickless::local::future::{Handle, Sleep, Sleeps};

pub trait Executor: Sized {
    /// What sleeps are made from; `()` where a thread's executor is ambient.
    type Timers;
    type Sleep: Future;

    fn new() -> Self;

    /// Runs a future, to which it passes what its sleeps are made from.
    fn run<T, F: Future<Output = T>>(&mut self, main: impl FnOnce(Self::Timers) -> F) -> T;

    fn sleep_until(timers: &Self::Timers, at: Instant) -> Self::Sleep;

    fn push_out(timers: &Self::Timers, sleep: Pin<&mut Self::Sleep>, at: Instant);
}

/// Polls a sleep that is not due.
pub fn poll_once<F: Future + ?Sized>(sleep: Pin<&mut F>) {
    assert!(sleep.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

impl Executor for tokio::runtime::Runtime {
    type Timers = ();
    type Sleep = tokio::time::Sleep;

    fn new() -> Self {
        tokio_sleep::runtime()
    }

    fn run<T, F: Future<Output = T>>(&mut self, main: impl FnOnce(()) -> F) -> T {
        self.block_on(tokio::task::unconstrained(main(())))
    }

    fn sleep_until((): &(), at: Instant) -> Self::Sleep {
        tokio::time::sleep_until(at.into())
    }

    fn push_out((): &(), sleep: Pin<&mut Self::Sleep>, at: Instant) {
        sleep.reset(at.into());
    }
}

/// async-io's `block_on`.
pub struct AsyncIo;

impl Executor for AsyncIo {
    type Timers = ();
    type Sleep = async_io::Timer;

    fn new() -> Self {
        AsyncIo
    }

    fn run<T, F: Future<Output = T>>(&mut self, main: impl FnOnce(()) -> F) -> T {
        async_io::block_on(main(()))
    }

    fn sleep_until((): &(), at: Instant) -> async_io::Timer {
        async_io::Timer::at(at)
    }

    fn push_out((): &(), mut sleep: Pin<&mut async_io::Timer>, at: Instant) {
        sleep.set_at(at);
    }
}

/// `tickless::local::future` in the smallest event loop.
pub struct Ours<const IS_COARSE: bool>;

pub const PRECISE: &str = "**local Sleep**";

const START: tickless::time::Instant = tickless::time::Instant::from_secs(1);

impl<const IS_COARSE: bool> Executor for Ours<IS_COARSE> {
    /// The instant is [`START`] on the clock of the sleeps.
    type Timers = (Handle, Instant);
    type Sleep = Sleep;

    fn new() -> Self {
        Ours
    }

    fn run<T, F: Future<Output = T>>(&mut self, main: impl FnOnce(Self::Timers) -> F) -> T {
        let begun = Instant::now();
        let sleeps = Sleeps::new(Clock::manual(START));
        let mut main = pin!(main((sleeps.handle(), begun)));
        loop {
            if let Poll::Ready(output) = main.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                return output;
            }
            let now = || START + begun.elapsed();
            std::thread::sleep(sleeps.next_event().expect("it waits for a sleep") - now());
            sleeps.advance(now());
        }
    }

    fn sleep_until((timers, begun): &Self::Timers, at: Instant) -> Sleep {
        let at = START + (at - *begun);
        if IS_COARSE { timers.coarse_sleep(at - timers.now()) } else { timers.sleep_until(at) }
    }

    fn push_out((_, begun): &Self::Timers, mut sleep: Pin<&mut Sleep>, at: Instant) {
        sleep.reset_at(START + (at - *begun));
    }
}
