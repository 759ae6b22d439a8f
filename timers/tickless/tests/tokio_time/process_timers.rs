//! Runtimes that use the timers of the process: after their end, and while their worker is blocked.

use crate::{HOUR, ms};
use std::sync::mpsc::channel;
use std::time::Instant;
use tickless::tokio_time::{interval, rescue_after, sleep, use_tokio_sleep};
use tokio::runtime::{Builder, Runtime};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_runtime_that_has_ended_is_left() {
    let runtime = current_thread();
    let handle = runtime.handle().clone();
    runtime.block_on(async { sleep(ms(1)).await });
    drop(runtime);
    let _entered = handle.enter();
    let begin = Instant::now();
    pollster::block_on(sleep(ms(5)));
    assert!(begin.elapsed() >= ms(5));
}

/// Its pending tick completes, and later ones are a period apart.
#[test]
fn an_interval_outlives_its_runtime() {
    for runtime in [current_thread(), Builder::new_multi_thread().enable_all().build().unwrap()] {
        let mut ticks = runtime.block_on(async {
            let mut ticks = interval(ms(10));
            ticks.tick().await;
            ticks
        });
        drop(runtime);
        // Before the pending tick, at which the next period begins.
        let begin = Instant::now();
        pollster::block_on(ticks.tick());
        let due = [(); 3].map(|()| pollster::block_on(ticks.tick()));
        assert!(begin.elapsed() >= ms(30), "{:?}", begin.elapsed());
        assert_eq!([due[1] - due[0], due[2] - due[1]], [ms(10); 2]);
        ticks.reset();
        pollster::block_on(ticks.tick());
        assert!(begin.elapsed() >= ms(40), "{:?}", begin.elapsed());
    }
}

#[test]
fn a_thread_fires_the_timers_of_a_blocked_worker() {
    for uses_tokio_sleep in [false, true] {
        current_thread().block_on(async {
            if uses_tokio_sleep {
                use_tokio_sleep();
            }
            rescue_after(HOUR).unwrap();
            rescue_after(ms(5)).unwrap();
            let (begin, slept, (end, ended)) = (Instant::now(), sleep(ms(20)), channel());
            std::thread::spawn(move || {
                pollster::block_on(slept);
                end.send(())
            });
            // This blocks the runtime's only worker.
            ended.recv_timeout(ms(60_000)).expect("another thread fires the timer");
            assert!(begin.elapsed() >= ms(20));
        });
    }
}
