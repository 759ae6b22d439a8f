//! `tickless late --watch` and `tickless latency --break` on this machine's kernel, with a cause
//! that was planted.

use crate::live::{
    Spinner, is_refused_without_rights, leaves_nothing, shows_what_was_seen, skip, tracefs,
};
use crate::run::{Ended, PROGRAM, file, json, path, tickless};
use serde_json::Value;
use std::process::Command;
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

/// The longest hop of a wakeup; null if its trace does not have its end.
fn longest(broken: &Value) -> Value {
    let hops = broken["hops"].as_array().into_iter().flatten();
    hops.max_by_key(|hop| hop["ns"].as_u64()).cloned().unwrap_or_default()
}

/// The first late wakeup ends the measurement. Explaining the kept trace gives the same cause. The
/// keys are documented. Method: a spinner that outranks the sampler on its CPU.
#[test]
fn a_break_names_the_cause_and_keeps_the_trace() {
    let (spin, rest) = (Duration::from_millis(30), Duration::from_millis(30));
    let Some(spinner) = Spinner::start(spin, rest) else { return };
    let latency = "latency -q -p 10 -D 20 --break 8ms --force -o break.txt.gz --format json \
                   --sleeper timerfd,clock_nanosleep";
    let mut broken = Value::Null;
    // On a busy machine something else may be the first to be late; not three times.
    for _ in 0..3 {
        let mut taskset = Command::new("taskset");
        taskset.args(["-c", &spinner.cpu.to_string(), PROGRAM]).args(latency.split(' '));
        let Ok(output) = taskset.current_dir(path("")).output() else {
            return skip("there is no taskset");
        };
        let rows = Ended::from(output).exits(3, &["more than --break"]).json();
        let rows = rows.as_array().unwrap().iter().map(|row| &row["break"]);
        let [one] = rows.filter(|it| it.is_object()).collect::<Vec<_>>()[..] else {
            panic!("not one break")
        };
        broken = one.clone();
        let causes = [&longest(&broken)["cause"], &broken["causes"][0]["cause"]];
        if causes.iter().all(|cause| **cause == spinner.cause()) {
            break;
        }
    }
    let late_ns = broken["late_ns"].as_u64().unwrap();
    assert!(late_ns > 8_000_000, "{broken:#}");
    assert_eq!(longest(&broken)["cause"], spinner.cause(), "{broken:#}");
    let hops = broken["hops"].as_array().unwrap();
    // Deadlines are on CLOCK_MONOTONIC, and so is the trace.
    let sum: u64 = hops.iter().map(|hop| hop["ns"].as_u64().unwrap()).sum();
    assert!(late_ns.abs_diff(sum) < 100_000, "{broken:#}");
    assert_eq!(broken["causes"][0]["cause"], spinner.cause(), "{broken:#}");
    crate::json::compare("break", std::slice::from_ref(&broken));
    let again = json("late break.txt.gz --threshold 8ms");
    assert_eq!(again["causes"][0]["cause"], spinner.cause(), "{again:#}");
}

#[test]
fn without_a_late_wakeup_no_file_is_written() {
    let Some(tracefs) = tracefs() else { return };
    let file_is = |text: Option<&str>| {
        assert_eq!(std::fs::read_to_string(path("never.txt.gz")).ok().as_deref(), text);
    };
    let _ = std::fs::remove_file(path("never.txt.gz"));
    let long = "latency -q --sleeper timerfd --break 1h -o never.txt.gz";
    let _ = tickless(&format!("{long} -l 20")).exits(0, &[]);
    file_is(None);
    file("never.txt.gz", "mine");
    let _ = tickless(&format!("{long} -l 20")).exits(1, &["--force"]);
    file_is(Some("mine"));
    for signal in ["-INT", "-KILL"] {
        leaves_nothing(&tracefs, &format!("{long} -D 1h --force"), signal);
    }
}

#[test]
fn a_break_without_rights_fails_with_an_alternative() {
    if let Some(refused) = is_refused_without_rights("latency --break 1ms -o /dev/null") {
        assert!(refused.err.contains("--limit"), "{refused:?}");
    }
}
