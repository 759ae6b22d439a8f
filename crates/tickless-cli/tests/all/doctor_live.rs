//! `tickless doctor`, run as a user runs it, with pathologies planted in this machine.

use crate::run::{PROGRAM, keys_named_on, page, stderr, stdout, tickless};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::live::{skip, tracefs, wait_until, without_rights};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tickless_lab::doctor::checks;

/// What one test plants another must not find.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn doctor(args: &[&str]) -> Output {
    tickless(&[&["doctor"], args].concat())
}

fn findings(output: &Output) -> Vec<Value> {
    let is_judged = matches!(output.status.code(), Some(0 | 3));
    assert!(is_judged, "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The finding of one check.
fn look(check: &str, duration: &str) -> Value {
    let output = doctor(&["-D", duration, "--check", check, "--format", "json"]);
    let mut findings = findings(&output);
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

/// It has exactly the documented keys. A bad finding, and no other, makes the exit status 3. An
/// unknown one has its reason.
#[test]
fn json_has_a_finding_for_each_check() {
    let _alone = alone();
    let output = doctor(&["-D", "300ms", "--format", "json"]);
    let findings = findings(&output);
    let names: Vec<&str> = findings.iter().map(|f| f["check"].as_str().unwrap()).collect();
    assert_eq!(names, checks().into_iter().map(|check| check.name).collect::<Vec<_>>());
    for finding in &findings {
        keys_named_on("doctor", finding);
        let verdict = finding["verdict"].as_str().unwrap();
        assert!(["ok", "warn", "bad", "unknown"].contains(&verdict), "{finding}");
        // A source may be judged by its name where it could not be timed.
        assert!(finding["figure"].is_number() || verdict == "unknown", "{finding}");
        assert!(!finding["how"].as_str().unwrap().is_empty(), "{finding}");
    }
    let page = page("doctor");
    for word in names {
        assert!(page.contains(&format!("`{word}`")), "docs/book/src/doctor.md lacks {word}");
    }
    let is_bad = findings.iter().any(|finding| finding["verdict"] == "bad");
    assert_eq!(output.status.code(), Some(if is_bad { 3 } else { 0 }));
}

/// Text and CSV have the same findings, no colour without a terminal, and lines that fit.
#[test]
fn only_the_chosen_checks_are_printed() {
    let _alone = alone();
    let args = ["--check", "timer-slack,clock-source", "--strict"];
    let csv = stdout(&doctor(&[&args[..], &["--format", "csv"]].concat()));
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows[0], "check,verdict,figure,unit,how,advice,study");
    assert!(rows[1].starts_with("clock-source,") && rows[2].starts_with("timer-slack,"), "{csv}");
    assert_eq!(rows.len(), 3);
    let output = Command::new(PROGRAM)
        .arg("doctor")
        .args(args)
        .env("CLICOLOR_FORCE", "1")
        .env("TERM", "xterm")
        .output()
        .unwrap();
    let text = stdout(&output);
    assert!(text.contains("clock-source") && text.contains("timer-slack"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_terminal_has_colours_unless_no_color_is_set() {
    let _alone = alone();
    let on_terminal = |no_color: Option<&str>| {
        let line = format!("{PROGRAM} doctor --check timer-slack");
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
        command.envs(no_color.map(|value| ("NO_COLOR", value))).stdin(Stdio::null());
        command.output().map(|output| stdout(&output))
    };
    let Ok(coloured) = on_terminal(None) else {
        return skip(
            "a_terminal_has_colours_unless_no_color_is_set",
            "there is no script(1) to make a terminal",
        );
    };
    assert!(coloured.contains("\u{1b}[32mok"), "{coloured:?}");
    assert!(!on_terminal(Some("1")).unwrap().contains("\u{1b}[32m"));
    assert!(on_terminal(Some("")).unwrap().contains("\u{1b}[32m"), "empty is not set");
}

#[test]
fn without_rights_findings_are_unknown_with_their_reason() {
    let _alone = alone();
    let mut command = Command::new(PROGRAM);
    command.args(["doctor", "-D", "100ms", "--format", "json"]);
    let Some(output) =
        without_rights("without_rights_findings_are_unknown_with_their_reason", &mut command)
    else {
        return;
    };
    for finding in findings(&output) {
        let check = finding["check"].as_str().unwrap();
        let needs_root = ["rearm-writes", "rearm-removals", "timer-cancels", "tick-wakers"];
        if needs_root.contains(&check) || check == "aligned-timers" {
            assert_eq!(finding["verdict"], "unknown", "{finding}");
            assert!(finding["figure"].is_null(), "{finding}");
            assert!(finding["how"].as_str().unwrap().contains("root"), "{finding}");
        }
        if ["clock-source", "timer-slack"].contains(&check) {
            assert!(finding["figure"].is_number(), "{finding}");
        }
    }
}

#[test]
fn a_thread_that_sleeps_a_millisecond_at_a_time_is_named() {
    let Some(_) = tracefs("a_thread_that_sleeps_a_millisecond_at_a_time_is_named") else { return };
    let _alone = alone();
    let stop = Arc::new(AtomicBool::new(false));
    let waker = thread::Builder::new().name("planted-waker".to_string());
    let waker = waker.spawn({
        let stop = Arc::clone(&stop);
        move || {
            let _ = tickless_lab::measure::sleep_with_slack(1);
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_micros(700));
            }
        }
    });
    let mut seen = Value::Null;
    // A machine that is busy enough lets it sleep through ticks.
    let is_found = (0..20).any(|_| {
        seen = look("tick-wakers", "500ms");
        let is_named = seen["how"].as_str().unwrap().contains("planted-waker");
        is_named && ["warn", "bad"].contains(&seen["verdict"].as_str().unwrap())
    });
    stop.store(true, Ordering::Relaxed);
    waker.unwrap().join().unwrap();
    assert!(is_found, "{seen}");
}

/// A process that does nothing but use its quota; killed and its group removed when dropped.
struct Group {
    path: PathBuf,
    worker: Child,
}

impl Group {
    fn make(number: usize) -> std::io::Result<Group> {
        let name = format!("tickless-test-{}-{number}", std::process::id());
        let path = Path::new(CONTROLLER).join(name);
        fs::create_dir(&path)?;
        let worker = Command::new("sh").args(["-c", "while :; do :; done"]).spawn()?;
        let group = Group { path, worker };
        fs::write(group.path.join("cpu.cfs_period_us"), "50000")?;
        fs::write(group.path.join("cpu.cfs_quota_us"), "1000")?;
        fs::write(group.path.join("tasks"), group.worker.id().to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.worker.kill();
        let _ = self.worker.wait();
        for _ in 0..200 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Where version 1 of the controller usually is.
const CONTROLLER: &str = "/sys/fs/cgroup/cpu";

/// Method: the kernel draws a group's phase, so a pair cannot be placed. Of 40 groups with a
/// hundredth of the period for each side, two in five are near another one: 1 - 0.98^39 = 0.54.
#[test]
fn groups_that_are_refilled_together_are_found() {
    const TEST: &str = "groups_that_are_refilled_together_are_found";
    let Some(_) = tracefs(TEST) else { return };
    if !Path::new(CONTROLLER).join("cpu.cfs_quota_us").exists() {
        return skip(TEST, format!("there is no version 1 cpu controller at {CONTROLLER}"));
    }
    let _alone = alone();
    let groups: std::io::Result<Vec<Group>> = (0..40).map(Group::make).collect();
    let groups = match groups {
        Ok(groups) => groups,
        Err(error) => return skip(TEST, format!("cgroups are refused: {error}")),
    };
    let mut seen = Value::Null;
    let is_found = (0..10).any(|_| {
        seen = look("quota-phases", "1s");
        ["warn", "bad"].contains(&seen["verdict"].as_str().unwrap())
    });
    drop(groups);
    assert!(is_found, "{seen}");
    let how = seen["how"].as_str().unwrap();
    assert!(how.contains("sched_cfs_period_timer every 50.0 ms"), "{how}");
    assert!(how.contains("share a period of 50.0 ms"), "{how}");
}

#[test]
fn an_interrupt_leaves_no_tracefs_instance() {
    let Some(tracefs) = tracefs("an_interrupt_leaves_no_tracefs_instance") else { return };
    let _alone = alone();
    let args = ["doctor", "-D", "1h", "--check", "rearm-writes"];
    let mut child = Command::new(PROGRAM).args(args).spawn().unwrap();
    let instances = tracefs.root().join("instances");
    let mine = format!("tickless-{}-", child.id());
    let has_instance = || {
        let names = fs::read_dir(&instances).unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with(&mine))
    };
    wait_until("it records", has_instance);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_until("the watcher has cleaned up", || !has_instance());
}
