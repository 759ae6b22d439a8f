//! The sleeps of executors that keep a task on its thread, each driven by its own executor.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tickless::local::future::{Handle, Sleep, Sleeps};

pub trait Executor {
    const NAME: &str;
    type Timers;
    type Sleep: Future;

    /// Runs a future, to which it passes what its sleeps are made from.
    fn run<T, F: Future<Output = T>>(main: impl FnOnce(Self::Timers) -> F) -> T;

    fn sleep_until(timers: &Self::Timers, at: Instant) -> Self::Sleep;

    fn push_out(timers: &Self::Timers, sleep: Pin<&mut Self::Sleep>, at: Instant);
}

/// Polls a sleep that is not due.
pub fn poll_once<F: Future>(sleep: Pin<&mut F>) {
    assert!(sleep.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// `tickless::local::future` in the smallest event loop.
pub struct Ours<const IS_COARSE: bool>;

pub const PRECISE: &str = "**local Sleep**";

const START: tickless::time::Instant = tickless::time::Instant::from_secs(1);

impl<const IS_COARSE: bool> Executor for Ours<IS_COARSE> {
    const NAME: &str = if IS_COARSE { "**local Sleep**, coarse" } else { PRECISE };
    /// The instant is [`START`] on the clock of the sleeps.
    type Timers = (Handle, Instant);
    type Sleep = Sleep;

    fn run<T, F: Future<Output = T>>(main: impl FnOnce(Self::Timers) -> F) -> T {
        let begun = Instant::now();
        let sleeps = Sleeps::new(START);
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

/// Implements [`Executor`] for an executor without an object for its timers.
macro_rules! executor {
    ($type:ident, $name:literal, $sleep:ty, $block_on:expr, $sleep_until:expr, $push_out:expr) => {
        pub struct $type;

        impl Executor for $type {
            const NAME: &str = $name;
            type Timers = ();
            type Sleep = $sleep;

            fn run<T, F: Future<Output = T>>(main: impl FnOnce(()) -> F) -> T {
                let block_on = $block_on;
                block_on(main(()))
            }

            fn sleep_until((): &(), at: Instant) -> $sleep {
                let sleep_until = $sleep_until;
                sleep_until(at)
            }

            fn push_out((): &(), sleep: Pin<&mut $sleep>, at: Instant) {
                let push_out: fn(Pin<&mut $sleep>, Instant) = $push_out;
                push_out(sleep, at);
            }
        }
    };
}

executor!(
    Tokio,
    "tokio `sleep`, current thread",
    tokio::time::Sleep,
    |main| super::tokio_sleep::RUNTIME.block_on(tokio::task::unconstrained(main)),
    |at: Instant| tokio::time::sleep_until(at.into()),
    |sleep, at| sleep.reset(at.into())
);

executor!(
    Smol,
    "async-io `Timer`",
    async_io::Timer,
    |main| async_io::block_on(main),
    async_io::Timer::at,
    |mut sleep, at| sleep.set_at(at)
);

#[cfg(feature = "runtimes")]
pub mod runtimes {
    use super::*;

    executor!(
        Monoio,
        "monoio `sleep`",
        monoio::time::Sleep,
        |main| {
            let builder = monoio::RuntimeBuilder::<monoio::FusionDriver>::new().enable_timer();
            builder.build().expect("a runtime starts").block_on(main)
        },
        |at: Instant| monoio::time::sleep_until(at.into()),
        |sleep, at| sleep.reset(at.into())
    );

    /// Its sleep cannot be moved: it is dropped, and another one is made and polled.
    type Boxed = Pin<Box<dyn Future<Output = ()>>>;

    executor!(
        Compio,
        "compio `sleep`",
        Boxed,
        |main| compio_runtime::Runtime::new().expect("a runtime starts").block_on(main),
        |at| -> Boxed { Box::pin(compio_runtime::time::sleep_until(at)) },
        |mut sleep, at| {
            *sleep = Box::pin(compio_runtime::time::sleep_until(at));
            poll_once(sleep);
        }
    );

    executor!(
        Glommio,
        "glommio `Timer`",
        glommio::timer::Timer,
        |main| {
            let builder = glommio::LocalExecutorBuilder::new(glommio::Placement::Unbound);
            builder.make().expect("io_uring is allowed").run(main)
        },
        |at: Instant| glommio::timer::Timer::new(at - Instant::now()),
        |mut sleep, at| sleep.reset(at - Instant::now())
    );
}
