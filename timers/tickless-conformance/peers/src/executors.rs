//! The sleeps of executors that keep a task on its thread.

use crate::tasks::Woken;
use crate::{HOUR, MS, Queue};
use core::ops::RangeInclusive;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tickless_conformance::Rounding;

pub trait Executor: Sized + 'static {
    const NAME: &str;
    const GRANULARITY: u64 = MS;
    /// What sleeps are made from; `()` where a thread's executor is ambient.
    type Timers;
    type Sleep: Future;

    fn new() -> Self;

    /// Runs a future, to which it passes what its sleeps are made from.
    fn run<T, F: Future<Output = T>>(&mut self, main: impl FnOnce(Self::Timers) -> F) -> T;

    fn sleep_until(timers: &Self::Timers, at: Instant) -> Self::Sleep;

    fn push_out(timers: &Self::Timers, sleep: Pin<&mut Self::Sleep>, at: Instant);

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        Rounding::Up.may_fire(Self::GRANULARITY, now, deadline)
    }

    /// Wakes what is due at `now`, the current time rounded down to a tick, without waiting: an
    /// executor checks its timers for a sleep that is due.
    fn turn(&mut self, now: Instant) {
        self.run(|timers| async move { _ = Self::sleep_until(&timers, now).await });
    }
}

/// Polls a sleep that is not due.
pub fn poll_once<F: Future>(sleep: Pin<&mut F>) {
    assert!(sleep.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// A sleep for each key, with the waker that adds the key to `woken`.
pub struct Sleeps<E: Executor> {
    executor: E,
    start: Instant,
    sleeps: HashMap<u32, Pending<E::Sleep>>,
    woken: Woken,
}

type Pending<S> = (Pin<Box<S>>, Waker);

impl<E: Executor> Queue for Sleeps<E> {
    const NAME: &str = E::NAME;
    const GRANULARITY: u64 = E::GRANULARITY;
    const ARM_REPLACES: bool = true;
    // Tokio's timers reach two years ahead.
    const HORIZON: u64 = 365 * 24 * HOUR;
    type Handle = u32;

    fn new() -> Sleeps<E> {
        let (executor, start) = (E::new(), Instant::now());
        Sleeps { executor, start, sleeps: HashMap::new(), woken: Woken::default() }
    }

    fn arm(&mut self, key: u32, after: Duration) -> u32 {
        let Sleeps { executor, sleeps, woken, .. } = self;
        let (at, waker) = (self.start + after, woken.waker(key));
        executor.run(|timers| async move {
            let mut sleep = Box::pin(E::sleep_until(&timers, at));
            if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                waker.wake_by_ref();
                sleep = Box::pin(E::sleep_until(&timers, at));
            }
            sleeps.insert(key, (sleep, waker));
        });
        key
    }

    fn push_out(&mut self, _: &mut u32, key: u32, after: Duration) {
        self.arm(key, after);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let Sleeps { executor, sleeps, .. } = self;
        executor.run(|_| async { sleeps.remove(&key).is_some() })
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let into_tick = Duration::from_nanos(now.as_nanos() as u64 % E::GRANULARITY);
        self.executor.turn(self.start + now - into_tick);
        for key in self.woken.take() {
            let Sleeps { executor, sleeps, .. } = self;
            let poll = |sleeps: &mut HashMap<u32, Pending<E::Sleep>>| {
                let Some((sleep, waker)) = sleeps.get_mut(&key) else { return false };
                let polled = sleep.as_mut().poll(&mut Context::from_waker(waker));
                polled.is_ready() && sleeps.remove(&key).is_some()
            };
            if executor.run(|_| async { poll(sleeps) }) {
                fired.push(key);
            }
        }
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        E::may_fire(now, deadline)
    }
}

/// Implements [`Executor`] for an executor without an object for its timers.
#[macro_export]
macro_rules! executor {
    (
        $type:ident($runtime:ty), $name:literal, $sleep:ty, $new:expr, $block_on:expr,
        $sleep_until:expr, $push_out:expr $(, { $($items:tt)* })?
    ) => {
        pub struct $type($runtime);

        impl $crate::executors::Executor for $type {
            const NAME: &str = $name;
            type Timers = ();
            type Sleep = $sleep;

            fn new() -> $type {
                $type($new)
            }

            fn run<T, F: Future<Output = T>>(&mut self, main: impl FnOnce(()) -> F) -> T {
                let block_on = $block_on;
                block_on(&mut self.0, main(()))
            }

            fn sleep_until((): &(), at: std::time::Instant) -> $sleep {
                let sleep_until = $sleep_until;
                sleep_until(at)
            }

            fn push_out((): &(), sleep: core::pin::Pin<&mut $sleep>, at: std::time::Instant) {
                let push_out: fn(core::pin::Pin<&mut $sleep>, std::time::Instant) = $push_out;
                push_out(sleep, at);
            }

            $($($items)*)?
        }
    };
}

executor!(
    Tokio(tokio::runtime::Runtime),
    "tokio 1.54.1, sleep",
    tokio::time::Sleep,
    crate::tasks::runtime(),
    |runtime: &mut tokio::runtime::Runtime, main| {
        runtime.block_on(tokio::task::unconstrained(main))
    },
    |at: Instant| tokio::time::sleep_until(at.into()),
    |sleep, at| sleep.reset(at.into())
);

#[cfg(feature = "monoio")]
type MonoioRuntime = monoio::Runtime<monoio::time::TimeDriver<monoio::LegacyDriver>>;

#[cfg(feature = "monoio")]
executor!(
    Monoio(MonoioRuntime),
    "monoio 0.2.4, sleep",
    monoio::time::Sleep,
    {
        let builder = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().enable_timer();
        builder.build().expect("a runtime starts")
    },
    |runtime: &mut MonoioRuntime, main| runtime.block_on(main),
    |at: Instant| monoio::time::sleep_until(at.into()),
    |sleep, at| sleep.reset(at.into())
);

/// compio's sleep cannot be moved: it is dropped, and another one is made and polled.
#[cfg(feature = "compio")]
type CompioSleep = Pin<Box<dyn Future<Output = ()>>>;

#[cfg(feature = "compio")]
executor!(
    Compio(compio_runtime::Runtime),
    "compio-runtime 0.12.6, sleep",
    CompioSleep,
    compio_runtime::Runtime::new().expect("a runtime starts"),
    |runtime: &mut compio_runtime::Runtime, main| runtime.block_on(main),
    |at| -> CompioSleep { Box::pin(compio_runtime::time::sleep_until(at)) },
    |mut sleep, at| {
        *sleep = Box::pin(compio_runtime::time::sleep_until(at));
        poll_once(sleep);
    },
    {
        const GRANULARITY: u64 = 1;

        fn turn(&mut self, _: Instant) {
            self.0.enter(|| self.0.poll_with(Some(Duration::ZERO)));
        }
    }
);

#[cfg(feature = "glommio")]
executor!(
    Glommio(glommio::LocalExecutor),
    "glommio 0.9.0, Timer",
    glommio::timer::Timer,
    {
        let builder = glommio::LocalExecutorBuilder::new(glommio::Placement::Unbound);
        // Few buffers for I/O, because ten megabytes of them take long to register. A turn that is
        // preempted spins until the clock moves, which the suite's does not.
        let builder = builder.io_memory(1 << 16).preempt_timer(Duration::from_secs(3_600));
        builder.make().expect("io_uring is allowed")
    },
    |runtime: &mut glommio::LocalExecutor, main| runtime.run(main),
    |at: Instant| glommio::timer::Timer::new(at - Instant::now()),
    |mut sleep, at| sleep.reset(at - Instant::now()),
    {
        const GRANULARITY: u64 = 1;

        /// A timer fires when its deadline has passed, not at it.
        fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
            deadline.max(now)..=deadline.max(now) + 1
        }

        fn turn(&mut self, _: Instant) {
            self.0.run(async {});
        }
    }
);

#[cfg(feature = "async-io")]
executor!(
    Smol(()),
    "async-io 2.6.0, Timer",
    async_io::Timer,
    (),
    |_, main| async_io::block_on(main),
    async_io::Timer::at,
    |mut sleep, at| sleep.set_at(at),
    {
        const GRANULARITY: u64 = 1;

        /// Runs the reactor until it has processed the timers that are due. Another thread of
        /// async-io may have the reactor, and leaves it when a timer is set: so this sets a timer,
        /// `last`, again and again.
        fn turn(&mut self, now: Instant) {
            let woken = Woken::default();
            let mut last = async_io::Timer::at(now + Duration::from_nanos(1));
            let waker = woken.waker(0);
            assert!(Pin::new(&mut last).poll(&mut Context::from_waker(&waker)).is_pending());
            async_io::block_on(core::future::poll_fn(|cx| {
                if !woken.is_empty() {
                    return Poll::Ready(());
                }
                last.set_at(now);
                cx.waker().wake_by_ref();
                Poll::Pending
            }));
        }
    }
);
