//! Executors that the conformance suite's program does not have.

use conformance_peers::executors::Executor;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tickless::local::Clock;
use tickless::local::future::{Handle, Sleep, Sleeps};

/// `tickless::local::future` in the smallest event loop.
pub struct Ours<const IS_COARSE: bool>;

pub const PRECISE: &str = "**local Sleep**";

const START: tickless::time::Instant = tickless::time::Instant::from_secs(1);

impl<const IS_COARSE: bool> Executor for Ours<IS_COARSE> {
    const NAME: &str = "local Sleep";
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
