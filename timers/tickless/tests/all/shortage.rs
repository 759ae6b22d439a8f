//! Processes that are short of a resource: threads that the system refuses, and thousands of sets.

use crate::support::{HOUR, MS, child_test, wait_until};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tickless::driver::StartTimersError;
use tickless::future::{deadline_scope, now, remaining, timeout};
use tickless::virtual_time::VirtualTime;
use tickless::{Timeout, Timers};

fn counting(timers: &Timers, fired: &Arc<AtomicU64>) -> Timeout {
    let fired = Arc::clone(fired);
    let timer = timers.timeout(move |_| _ = fired.fetch_add(1, Ordering::Relaxed));
    timer.start(MS).expect("not shut down");
    timer
}

/// Asserts, in a process that may start no threads, that starting drivers is an error and leaks
/// nothing. An event loop of the program and virtual time need no threads.
fn assert_no_threads() {
    let refused = Timers::builder().bases(3).start();
    assert!(matches!(refused, Err(StartTimersError::Thread { .. })), "{refused:?}");
    let message = refused.map(drop).expect_err("no threads").to_string();
    assert!(message.contains("limit on threads"), "{message}");
    let fired = Arc::new(AtomicU64::new(0));
    let (timers, mut driver) = Timers::builder().start_in_loop_with(|_| ());
    let timer = counting(&timers, &fired);
    wait_until("it fires in the loop", || {
        driver.run();
        fired.load(Ordering::Relaxed) == 1
    });
    let time = VirtualTime::new();
    let other = counting(time.timers(), &fired);
    time.advance(5 * MS);
    assert_eq!(fired.load(Ordering::Relaxed), 2);
    drop((timer, other));
    // Each poll of a future compares its deadline with the clock.
    let ended = pollster::block_on(deadline_scope(now() + 5 * MS, async {
        assert!(remaining().is_some_and(|left| left <= 5 * MS));
        timeout(HOUR, pending::<()>()).await
    }));
    let ended = ended.map(|inner| inner.expect_err("it never ends"));
    assert!(ended.is_ok_and(|inner| inner.is_ambient && inner.deadline <= now()));
}

/// Method: a child process at its limit, as a user other than root, as limits do not bind root.
#[test]
#[cfg(target_os = "linux")]
fn a_limit_on_threads_is_an_error() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    use std::os::unix::process::CommandExt;

    const CHILD: &str = "TICKLESS_TEST_NPROC";
    const UNPRIVILEGED: u32 = 65_534;
    if cfg!(miri) {
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Nproc, none).expect("a limit may be lowered");
        return assert_no_threads();
    }
    let mut child = child_test("shortage::a_limit_on_threads_is_an_error", CHILD, "1");
    if rustix::process::geteuid().is_root() {
        child.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    match child.output() {
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{stderr}");
        }
        Err(error) => println!("SKIPPED: no process of another user's can be started: {error}"),
    }
}

/// Method: in virtual time and in an event loop, which need no threads; and 200 sets with drivers.
#[test]
fn ten_thousand_sets_work_in_one_process() {
    let count = if cfg!(miri) { 10 } else { 10_000 };
    let fired = Arc::new(AtomicU64::new(0));
    let virtual_sets: Vec<_> = (0..count)
        .map(|_| {
            let time = VirtualTime::new();
            let timer = counting(time.timers(), &fired);
            (timer, time)
        })
        .collect();
    virtual_sets.iter().for_each(|(_, time)| time.advance(5 * MS));
    assert_eq!(fired.swap(0, Ordering::Relaxed), count);
    drop(virtual_sets);

    let mut loops: Vec<_> = (0..count)
        .map(|_| {
            let (timers, driver) = Timers::builder().system_clock().start_in_loop_with(|_| ());
            (counting(&timers, &fired), driver, timers)
        })
        .collect();
    wait_until("the timers of all loops fire", || {
        loops.iter_mut().for_each(|(_, driver, _)| _ = driver.run());
        fired.load(Ordering::Relaxed) == count
    });
    drop(loops);

    let count = if cfg!(miri) { 2 } else { 200 };
    fired.store(0, Ordering::Relaxed);
    let sets: Vec<_> = (0..count)
        .map(|_| {
            let timers = Timers::builder().bases(1).system_clock().start();
            let timers = timers.expect("a driver is started");
            (counting(&timers, &fired), timers)
        })
        .collect();
    wait_until("every set's driver fires", || fired.load(Ordering::Relaxed) == count);
    drop(sets);
}
