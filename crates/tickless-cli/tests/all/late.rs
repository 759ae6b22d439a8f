//! `tickless late --watch` on this machine's kernel, with a cause that was planted.

use crate::live::{Spinner, shows_what_was_seen};
use crate::run::tickless;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tickless_lab::measure::stay_on;

/// Method: it spins with real-time priority where four threads sleep a millisecond at a time.
#[test]
fn a_thread_that_occupies_a_cpu_is_the_first_cause() {
    let (spin, rest) = (Duration::from_millis(100), Duration::from_millis(30));
    let Some(spinner) = Spinner::start(spin, rest) else { return };
    let is_over = AtomicBool::new(false);
    let late = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                stay_on(spinner.cpu).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let ended = tickless("late --watch -D 3s --threshold 200us --format json");
        is_over.store(true, Ordering::Relaxed);
        ended.exits(0, &[]).json()
    });
    assert_eq!(late["causes"][0]["cause"], spinner.cause(), "{late:#}");
    assert!(late["causes"][0]["sleeps"].as_u64() > Some(4), "{late:#}");
    assert_eq!(late["is_partial"], false);
}

#[test]
fn an_interrupt_shows_partial_results() {
    shows_what_was_seen("late --watch -D 1h --threshold 1us");
}
