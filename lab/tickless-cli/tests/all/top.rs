//! `tickless top` on this machine's kernel, with and without the right to trace.

use crate::live::{is_refused_without_rights, shows_what_was_seen, tracefs};
use crate::run::tickless;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// With its timers. Method: this test's own sleeps.
#[test]
fn a_sleeping_process_is_in_the_table() {
    let Some(_) = tracefs() else { return };
    let is_over = AtomicBool::new(false);
    let mine = std::process::id();
    let line = format!("top --batch 2 -i 500ms --format json --filter {mine}");
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let ended = tickless(&line);
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    let tables: Vec<Value> =
        ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ended.status, tables.len()), (Some(0), 2), "{ended:?}");
    let row = &tables[1]["rows"][0];
    assert!(row["arms"].as_u64() > Some(20), "{}", tables[1]);
    assert_eq!(row["main_function"], "hrtimer_wakeup");
}

#[test]
fn an_interrupt_shows_the_partial_table() {
    shows_what_was_seen("top --once -i 60s");
}

#[test]
fn without_rights_counting_fails_with_advice() {
    is_refused_without_rights("top --once");
}
