//! `tickless record`, run as a user runs it, on this machine's own tracefs.

use crate::run::{PROGRAM, path, stderr};
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::live::{instances_of, skip, tracefs, wait_until, without_rights};
use flate2::read::GzDecoder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tickless_core::time::CpuId;
use tickless_trace::record::{IdleEvents, IdleStops, Tracefs};

/// Each recorder removes what it finds of dead ones, which the tests of that must not have taken
/// away from under them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record(file: &str, args: &[&str]) -> Output {
    let path = path(file);
    let mut command = Command::new(PROGRAM);
    command.args(["record", "--force", "-o", path.to_str().unwrap()]).args(args).output().unwrap()
}

/// A recorder that would go on for an hour; it has an instance when this returns.
fn recorder(tracefs: &Tracefs, file: &str) -> Child {
    let path = path(file);
    let child = Command::new(PROGRAM)
        .args(["record", "--force", "-D", "1h", "-o", path.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a recorder records", || {
        let Some(instance) = instances_of(tracefs, child.id()).pop() else { return false };
        // A new instance is on, until it is set up.
        ["events/timer/enable", "tracing_on"].iter().all(|file| {
            fs::read_to_string(instance.join(file)).is_ok_and(|text| text.starts_with('1'))
        })
    });
    child
}

/// The processes that this one started and that are there.
fn children(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |child: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    pids.filter(|&child| parent(child) == Some(pid)).collect()
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

fn replay(file: &str) -> Value {
    let path = path(file);
    let args = ["replay", path.to_str().unwrap(), "--format", "json"];
    let output = Command::new(PROGRAM).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Goal: what is recorded around a command replays, with everything that a replay can use; the
/// command's status is ours; nothing is left behind.
#[test]
fn a_recording_replays() {
    let Some(tracefs) = tracefs("a_recording_replays") else { return };
    let _alone = alone();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.005; done; exit 5";
    let output = record("round.txt.gz", &["--buffer", "8M", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("tickless replay "), "{}", stderr(&output));
    let json = replay("round.txt.gz");
    assert!(json["operations"]["start"].as_u64() > Some(10), "{json}");
    assert!(json["operations"]["expire"].as_u64() > Some(10), "{json}");
    assert_eq!(
        (json["skipped_lines"].as_u64(), json["dropped_events"].as_u64()),
        (Some(0), Some(0))
    );
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(json["trace"]["kernel"], release.trim());
    for (event, key) in
        [("msr/write_msr", "device_writes"), ("irq_vectors/local_timer_entry", "timer_interrupts")]
    {
        let has_event = tracefs.root().join("events").join(event).is_dir();
        let is_recorded = json["trace"]["recorded"][key].as_u64() > Some(0);
        // Another kind of timer device leaves no writes of that register.
        assert!(is_recorded || !has_event || !has_deadline_timer(), "{key}: {json}");
    }
    let mut head = String::new();
    let file = fs::File::open(path("round.txt.gz")).unwrap();
    GzDecoder::new(file).take(400).read_to_string(&mut head).unwrap();
    assert!(head.starts_with("# recorded: sh -c for i in 1"), "{head}");
    assert!(head.contains("clock=mono"), "{head}");
}

fn has_deadline_timer() -> bool {
    fs::read_to_string("/proc/cpuinfo").unwrap().contains("tsc_deadline_timer")
}

/// The replay counts them too, and uses the others.
#[test]
fn dropped_events_are_counted_and_reported_with_advice() {
    let Some(_) = tracefs("dropped_events_are_counted_and_reported_with_advice") else { return };
    let _alone = alone();
    let script = "for i in $(seq 400); do sleep 0.001; done";
    let output = record("small.txt", &["--buffer", "1K", "--", "sh", "-c", script]);
    let message = stderr(&output);
    assert!(message.contains("events were dropped, the oldest first"), "{message}");
    assert!(message.contains("Record again with --buffer"), "{message}");
    let json = replay("small.txt");
    assert!(json["dropped_events"].as_u64() > Some(0), "{json}");
}

/// Ctrl-C and SIGTERM leave no tracefs instance.
#[test]
fn an_interrupted_recording_can_be_replayed() {
    let Some(tracefs) = tracefs("an_interrupted_recording_can_be_replayed") else { return };
    let _alone = alone();
    for how in [Signal::SIGINT, Signal::SIGTERM] {
        let child = recorder(&tracefs, "cut.txt.gz");
        let pid = child.id();
        // Something that is sure to be in it.
        std::thread::sleep(std::time::Duration::from_millis(100));
        signal(pid, how);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(instances_of(&tracefs, pid).is_empty());
        assert!(replay("cut.txt.gz")["operations"]["start"].as_u64() > Some(0));
    }
}

#[test]
fn a_signal_ends_the_command_and_keeps_the_recording() {
    let Some(tracefs) = tracefs("a_signal_ends_the_command_and_keeps_the_recording") else {
        return;
    };
    let _alone = alone();
    let path = path("ended.txt.gz");
    let child = Command::new(PROGRAM)
        .args(["record", "--force", "-o", path.to_str().unwrap(), "--", "sleep", "60"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The watcher and the command.
    wait_until("the command runs", || children(child.id()).len() == 2);
    wait_until("it sleeps", || {
        children(child.id()).iter().any(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
        })
    });
    signal(child.id(), Signal::SIGTERM);
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15), "{}", stderr(&output));
    assert!(instances_of(&tracefs, pid).is_empty());
    replay("ended.txt.gz");
}

#[test]
fn the_watcher_cleans_up_after_a_killed_recorder() {
    let Some(tracefs) = tracefs("the_watcher_cleans_up_after_a_killed_recorder") else { return };
    let _alone = alone();
    let mut child = recorder(&tracefs, "killed.txt");
    child.kill().unwrap();
    // This must not depend on a parent that waits for it.
    wait_until("the watcher has cleaned up", || instances_of(&tracefs, child.id()).is_empty());
    child.wait().unwrap();
}

#[test]
fn the_next_recorder_cleans_up_after_a_killed_watcher() {
    let Some(tracefs) = tracefs("the_next_recorder_cleans_up_after_a_killed_watcher") else {
        return;
    };
    let _alone = alone();
    let mut child = recorder(&tracefs, "killed.txt");
    let watchers = children(child.id());
    assert_eq!(watchers.len(), 1, "one watcher and nothing else");
    signal(watchers[0], Signal::SIGKILL);
    child.kill().unwrap();
    child.wait().unwrap();
    let output = record("next.txt", &["-D", "10ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(instances_of(&tracefs, child.id()).is_empty());
}

#[test]
fn a_refusal_has_advice_and_leaves_nothing() {
    let Some(tracefs) = tracefs("a_refusal_has_advice_and_leaves_nothing") else { return };
    let _alone = alone();
    for (args, advice) in [
        (&["-e", "sched:nonsense"][..], "available_events"),
        (&["--buffer", "64G"], "--buffer"),
        (&["--", "/no/such/command"], "Check the name of the command"),
    ] {
        let path = path("refused.txt");
        let mut command = Command::new(PROGRAM);
        command.args(["record", "--force", "-o", path.to_str().unwrap()]).args(args);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(advice), "{args:?}: {}", stderr(&output));
        assert!(instances_of(&tracefs, pid).is_empty());
    }
    let nowhere = Command::new(PROGRAM).args(["record", "-o", "/no/such/place"]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(stderr(&nowhere).contains("-o"), "{}", stderr(&nowhere));
}

#[test]
fn without_rights_recording_fails_with_advice() {
    let mut command = Command::new(PROGRAM);
    command.args(["record", "--force", "-o", "/dev/null"]);
    let Some(output) = without_rights("without_rights_recording_fails_with_advice", &mut command)
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("sudo") || message.contains("no tracefs"), "{message}");
}

/// Without a terminal on which to ask, nothing is recorded.
#[test]
fn an_existing_file_needs_force() {
    if tracefs("an_existing_file_needs_force").is_none() {
        return;
    }
    let path = path("kept.txt");
    fs::write(&path, "mine").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["record", "-D", "10ms", "-o", path.to_str().unwrap()]).stdin(Stdio::null());
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("kept.txt: is there already"), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let forced = record("kept.txt", &["-D", "10ms"]);
    assert_eq!(forced.status.code(), Some(0), "{}", stderr(&forced));
    assert!(fs::read_to_string(&path).unwrap().starts_with("# recorded: "));
}

/// Each CPU whose idle thread stopped its tick has events in the recording, or a message of
/// `record` and of its readers.
#[test]
fn an_unrecorded_idle_thread_is_reported() {
    const NAME: &str = "an_unrecorded_idle_thread_is_reported";
    if tracefs(NAME).is_none() {
        return;
    }
    let _alone = alone();
    let before = IdleStops::now();
    let output = record("idle.txt", &["-D", "2s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // All CPUs whose idle threads did anything.
    let idle = IdleStops::now().unseen(&before, &IdleEvents::new());
    if idle.is_empty() {
        return skip(NAME, "no CPU was idle, or the kernel does not tell");
    }
    let text = fs::read_to_string(path("idle.txt")).unwrap();
    let again = Command::new(PROGRAM).arg("replay").arg(path("idle.txt")).output().unwrap();
    for CpuId(cpu) in idle {
        let column = format!("[{cpu:03}]");
        let mut lines = text.lines().filter(|line| line.trim_start().starts_with("<idle>-0 "));
        let is_there = lines.any(|line| line.contains(&column) && !line.contains(".h"));
        let message = format!("CPU {cpu}'s idle thread");
        let is_told = stderr(&output).contains(&message);
        assert!(is_there || is_told, "CPU {cpu}: {}", stderr(&output));
        assert_eq!(is_told, stderr(&again).contains(&message), "{}", stderr(&again));
    }
}
