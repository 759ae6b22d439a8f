//! `tickless top` on this machine's kernel, with and without the right to trace.

use crate::live::{instances_of, shows_what_was_seen, tracefs, wait_until, without_rights};
use crate::run::{PROGRAM, stderr, stdout, tickless};
use serde_json::Value;
use std::process::{Command, Output, Stdio};

fn top(args: &[&str]) -> Output {
    tickless(&[&["top"], args].concat())
}

/// With its timers, from either source. Method: this test's own sleeps.
#[test]
fn a_sleeping_process_is_in_the_table() {
    if tracefs("a_sleeping_process_is_in_the_table").is_none() {
        return;
    }
    let sleeper = std::thread::spawn(|| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::time::Instant::now() < end && !END.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    static END: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    for source in ["tracefs", "auto"] {
        let mine = std::process::id().to_string();
        let args = ["--batch", "2", "-i", "500ms", "--format", "json", "--filter", &mine];
        let output = top(&[&args[..], &["--source", source]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let tables: Vec<Value> =
            stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(tables.len(), 2, "{}", stdout(&output));
        let row = &tables[1]["rows"][0];
        assert!(row["arms"].as_u64() > Some(20), "{source}: {}", tables[1]);
        assert_eq!(row["main_function"], "hrtimer_wakeup", "{source}");
        assert_eq!(tables[1]["lost"], 0, "{source}");
    }
    END.store(true, std::sync::atomic::Ordering::Relaxed);
    sleeper.join().unwrap();
}

/// Nothing is left in tracefs.
#[test]
fn an_interrupt_shows_the_partial_table() {
    let mut top = Command::new(PROGRAM);
    top.args(["top", "--once", "-i", "60s", "--source", "tracefs"]);
    shows_what_was_seen("an_interrupt_shows_the_partial_table", &mut top);
}

#[test]
fn a_killed_top_leaves_no_tracefs_instance() {
    let Some(tracefs) = tracefs("a_killed_top_leaves_no_tracefs_instance") else { return };
    let mut child = Command::new(PROGRAM)
        .args(["top", "--once", "-i", "60s", "--source", "tracefs"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("it counts", || instances_of(&tracefs, child.id()).len() == 1);
    child.kill().unwrap();
    wait_until("the watcher has cleaned up", || instances_of(&tracefs, child.id()).is_empty());
    child.wait().unwrap();
}

#[test]
fn a_refusal_has_advice() {
    let no_terminal = top(&[]);
    assert_eq!(no_terminal.status.code(), Some(1));
    assert!(stderr(&no_terminal).contains("--once"), "{}", stderr(&no_terminal));
    let mut command = Command::new(PROGRAM);
    command.args(["top", "--once"]);
    let Some(output) = without_rights("a_refusal_has_advice", &mut command) else { return };
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("sudo") || message.contains("tracefs"), "{message}");
}
