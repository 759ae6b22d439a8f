//! What tests need that use the machine's own kernel.
#![allow(dead_code)]

use std::fs::OpenOptions;
use std::io::{Write, stderr};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tickless_trace::record::Tracefs;

/// Says that a test did not run, and why: past the test harness, which keeps what passing tests
/// print to itself, and to the gate, which repeats it at its end.
pub fn skip(test: &str, why: impl std::fmt::Display) {
    let line = format!("SKIPPED: {test}: {why}\n");
    let _ = stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("CI_SKIPPED")
        && let Ok(mut file) = OpenOptions::new().append(true).open(path)
    {
        let _ = file.write_all(line.as_bytes());
    }
}

/// What comes of a program that gets Ctrl-C half a second after its start: long enough for its
/// handler to be there, and far too short for what it was asked to do.
pub fn interrupted(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

/// The machine's tracefs; none, and said so, where this user may not use it.
pub fn tracefs(test: &str) -> Option<Tracefs> {
    Tracefs::find().map_err(|error| skip(test, error)).ok()
}

/// Waits until something is so; `what` it is, if it never comes.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
