//! `tickless late --watch` and `tickless latency --break` on this machine's kernel, with a cause
//! that was planted.

use crate::live::{
    Spinner, instances_of, shows_what_was_seen, skip, tracefs, wait_until, without_rights,
};
use crate::run::{PROGRAM, path, stderr, stdout, tickless};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tickless_lab::measure::stay_on;

/// Method: it spins with real-time priority where four threads sleep a millisecond at a time.
#[test]
fn a_thread_that_occupies_a_cpu_is_the_first_cause() {
    const NAME: &str = "a_thread_that_occupies_a_cpu_is_the_first_cause";
    let (spin, rest) = (Duration::from_millis(100), Duration::from_millis(30));
    let Some(spinner) = Spinner::start(NAME, spin, rest) else { return };
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
        let watch = ["late", "--watch", "-D", "3s", "--threshold", "200us", "--format", "json"];
        let output = tickless(&watch);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    });
    assert_eq!(late["causes"][0]["cause"], spinner.cause(), "{late:#}");
    assert!(late["causes"][0]["sleeps"].as_u64() > Some(4), "{late:#}");
    assert_eq!(late["is_partial"], false);
}

#[test]
fn an_interrupt_shows_partial_results() {
    let mut late = Command::new(PROGRAM);
    late.args(["late", "--watch", "-D", "1h", "--threshold", "1us"]);
    shows_what_was_seen("an_interrupt_shows_partial_results", &mut late);
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
    const NAME: &str = "a_break_names_the_cause_and_keeps_the_trace";
    let (spin, rest) = (Duration::from_millis(30), Duration::from_millis(30));
    let Some(spinner) = Spinner::start(NAME, spin, rest) else { return };
    let file = path("break.txt.gz");
    let (cpu, file) = (spinner.cpu.to_string(), file.to_str().unwrap());
    let latency = [PROGRAM, "latency", "-q", "-p", "10", "-D", "20", "--break", "8ms", "--force"];
    let mut broken = Value::Null;
    // On a busy machine something else may be the first to be late; not three times.
    for _ in 0..3 {
        let output = Command::new("taskset")
            .args([&["-c", &cpu][..], &latency, &["-o", file, "--format", "json"]].concat())
            .args(["--sleeper", "timerfd,clock_nanosleep"])
            .output();
        let Ok(output) = output else { return skip(NAME, "there is no taskset") };
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("more than --break"), "{}", stderr(&output));
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = rows.as_array().unwrap().iter().map(|row| &row["break"]);
        let [one] = rows.filter(|it| it.is_object()).collect::<Vec<_>>()[..] else {
            panic!("{}", stdout(&output))
        };
        broken = one.clone();
        if longest(&broken)["cause"] == spinner.cause() {
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
    let again = tickless(&["late", file, "--threshold", "8ms", "--format", "json"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["causes"][0]["cause"], spinner.cause(), "{again:#}");
}

/// The exit status is 0, an existing trace is kept, and Ctrl-C and a kill leave no tracefs
/// instance.
#[test]
fn without_a_late_wakeup_no_file_is_written() {
    let Some(tracefs) = tracefs("without_a_late_wakeup_no_file_is_written") else { return };
    let file = path("never.txt.gz");
    let _ = fs::remove_file(&file);
    let long =
        ["latency", "-q", "--sleeper", "timerfd", "--break", "1h", "-o", file.to_str().unwrap()];
    let output = tickless(&[&long[..], &["-l", "20"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!file.exists());
    fs::write(&file, "mine").unwrap();
    let refused = tickless(&[&long[..], &["-l", "20"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    for signal in ["-INT", "-KILL"] {
        let mut child = Command::new(PROGRAM)
            .args([&long[..], &["-D", "1h", "--force"]].concat())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("it records", || instances_of(&tracefs, child.id()).len() == 1);
        // Its handler is there before its instance is.
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        wait_until("nothing is left", || instances_of(&tracefs, child.id()).is_empty());
        child.wait().unwrap();
    }
}

#[test]
fn a_break_without_rights_fails_with_an_alternative() {
    const NAME: &str = "a_break_without_rights_fails_with_an_alternative";
    let mut command = Command::new(PROGRAM);
    command.args(["latency", "--break", "1ms", "-o", "/dev/null"]);
    let Some(output) = without_rights(NAME, &mut command) else { return };
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("--limit"), "{message}");
    assert!(message.contains("sudo") || message.contains("no tracefs"), "{message}");
}
