//! `tickless record`, run as a user runs it, on this machine's own tracefs.

use crate::live::{
    alone, instances_of, is_refused_without_rights, leaves_nothing, skip, tracefs, wait_until,
};
use crate::run::{Ended, PROGRAM, file, json, path, program, signal, tickless};
use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;
use std::process::Command;
use tickless_core::time::CpuId;
use tickless_trace::record::{IdleEvents, IdleStops};

fn record(line: &str, script: &str) -> Ended {
    Ended::of(program(&format!("record --force {line} -- sh -c")).arg(script))
}

fn children(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |child: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    pids.filter(|&child| parent(child) == Some(pid)).collect()
}

#[test]
fn a_recording_replays() {
    let Some(tracefs) = tracefs() else { return };
    let _alone = alone();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.005; done; exit 5";
    let messages = ["recording begins now", "has ended", "tickless replay "];
    let _ = record("--buffer 8M -o round.txt.gz", script).exits(5, &messages);
    let json = json("replay round.txt.gz");
    assert!(json["operations"]["start"].as_u64() > Some(10), "{json}");
    assert!(json["operations"]["expire"].as_u64() > Some(10), "{json}");
    assert_eq!((&json["skipped_lines"], &json["dropped_events"]), (&0.into(), &0.into()));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(json["trace"]["kernel"], release.trim());
    // Another kind of timer device leaves no writes of that register.
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap();
    for (event, key) in
        [("msr/write_msr", "device_writes"), ("irq_vectors/local_timer_entry", "timer_interrupts")]
    {
        let has_event = tracefs.root.join("events").join(event).is_dir();
        let is_recorded = json["trace"]["recorded"][key].as_u64() > Some(0);
        let is_possible = has_event && cpu.contains("tsc_deadline_timer");
        assert!(is_recorded || !is_possible, "{key}: {json}");
    }
    let mut head = String::new();
    let file = fs::File::open(path("round.txt.gz")).unwrap();
    GzDecoder::new(file).take(400).read_to_string(&mut head).unwrap();
    assert!(head.starts_with("# recorded: sh -c for i in 1"), "{head}");
    assert!(head.contains("clock=mono"), "{head}");
}

/// Goal: trace-cmd reads a recording in its format, and has all events and callbacks' names.
#[test]
fn trace_cmd_opens_a_recording_in_its_format() {
    let Some(_) = tracefs() else { return };
    let _alone = alone();
    let report = |file: &str| Command::new("trace-cmd").args(["report", "-t", "-i", file]).output();
    if report("/dev/null").is_err() {
        skip("there is no trace-cmd");
        return;
    }
    let script = "for i in $(seq 50); do sleep 0.005; done";
    let _ = record("--buffer 8M -o round.dat", script).exits(0, &["tickless replay round.dat"]);
    let report = report(path("round.dat").to_str().unwrap()).unwrap();
    file("reported.txt", report.stdout);
    let json = json("replay reported.txt");
    assert_eq!((&json["skipped_lines"], &json["dropped_events"]), (&0.into(), &0.into()));
    let mut top = json["top_functions"].as_array().unwrap().iter();
    let sleeps = top.find(|one| one["function"] == "hrtimer_wakeup").unwrap();
    assert!(sleeps["starts"].as_u64() >= Some(50), "{json}");
}

#[test]
fn dropped_events_are_counted_and_reported_with_advice() {
    let Some(_) = tracefs() else { return };
    let _alone = alone();
    let script = "for i in $(seq 400); do sleep 0.001; done";
    let messages = ["events were dropped, the oldest first", "Record again with --buffer"];
    let _ = record("--buffer 1K -o small.txt", script).exits(0, &messages);
    assert!(json("replay small.txt")["dropped_events"].as_u64() > Some(0));
}

#[test]
fn a_signal_ends_and_keeps_the_recording() {
    let Some(tracefs) = tracefs() else { return };
    let _alone = alone();
    for how in ["-INT", "-TERM"] {
        let line = "record --force -D 1h -o cut.txt.gz";
        let _ = leaves_nothing(&tracefs, line, how).exits(0, &[]);
        assert!(json("replay cut.txt.gz")["operations"]["start"].as_u64() > Some(0));
    }
    let child = program("record --force -o ended.txt.gz -- sleep 60").spawn().unwrap();
    let pid = child.id();
    let sleeps = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
    };
    wait_until("the command runs", || children(pid).iter().any(sleeps));
    signal(pid, "-TERM");
    let _ = Ended::from(child.wait_with_output().unwrap()).exits(128 + 15, &[]);
    assert!(instances_of(&tracefs, pid).is_empty());
    json("replay ended.txt.gz");
}

#[test]
fn a_killed_recorder_leaves_nothing() {
    let Some(tracefs) = tracefs() else { return };
    let _alone = alone();
    let line = "record --force -D 1h -o killed.txt";
    leaves_nothing(&tracefs, line, "-KILL");
    let mut child = program(line).spawn().unwrap();
    wait_until("a recorder and its watcher run", || {
        children(child.id()).len() == 1 && instances_of(&tracefs, child.id()).len() == 1
    });
    signal(children(child.id())[0], "-KILL");
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = tickless("record --force -D 10ms -o next.txt").exits(0, &[]);
    assert!(instances_of(&tracefs, child.id()).is_empty());
}

/// Goal: a full disk and a kill leave a file as it was. Method: no file may exceed 16 bytes. A
/// longer one is an error, or, without `trap`, ends the program in the middle of a write.
#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let _alone = alone();
    // `warp` also makes a file of its own at its start, so its program sets the limit.
    let limits = "-- sh -c 'prlimit --fsize=16 --pid $PPID; sleep 9'";
    let lines = [
        ("record --force -D 100ms -o", ""),
        ("machines atom-e3825 -o", ""),
        ("quota traces/bursts.txt.gz --html", ""),
        ("warp -q -o", limits),
        ("warp -q --html", limits),
    ];
    let can_record = tracefs().is_some();
    for (line, rest) in lines.into_iter().filter(|(line, _)| can_record || !line.contains("rec")) {
        let limit = if rest.is_empty() { "prlimit --fsize=16" } else { "" };
        for (trap, status) in [("trap '' XFSZ;", Some(1)), ("", None)] {
            file("whole.txt", "mine");
            let script =
                format!("{trap} ulimit -c 0; exec {limit} {PROGRAM} {line} whole.txt {rest}");
            let mut shell = Command::new("bash");
            let ended = Ended::of(shell.current_dir(path("")).args(["-c", &script]));
            assert_eq!(ended.status, status, "{line}: {ended:?}");
            assert!(trap.is_empty() || ended.err.contains("whole.txt"), "{line}: {ended:?}");
            assert_eq!(fs::read_to_string(path("whole.txt")).unwrap(), "mine", "{line}");
        }
    }
}

#[test]
fn a_refusal_has_advice_and_leaves_nothing() {
    let Some(tracefs) = tracefs() else { return };
    let _alone = alone();
    for (args, advice) in [
        ("-e sched:nonsense", "available_events"),
        ("--buffer 64G", "--buffer"),
        ("-- /no/such/command", "Check the name of the command"),
    ] {
        let child = program(&format!("record --force -o refused.txt {args}")).spawn().unwrap();
        let pid = child.id();
        let _ = Ended::from(child.wait_with_output().unwrap()).exits(1, &[advice]);
        assert!(instances_of(&tracefs, pid).is_empty());
    }
    // An existing file needs --force, because there is no terminal on which to ask.
    file("kept.txt", "mine");
    let line = "record -D 10ms -o kept.txt";
    let _ = tickless(line).exits(1, &["kept.txt: is there already", "--force"]);
    assert_eq!(fs::read_to_string(path("kept.txt")).unwrap(), "mine");
    let _ = tickless(&format!("{line} --force")).exits(0, &[]);
    assert!(fs::read_to_string(path("kept.txt")).unwrap().starts_with("# recorded: "));
    is_refused_without_rights("record --force -o /dev/null");
}

#[test]
fn without_a_limited_group_nothing_is_recorded_for_quota() {
    let Some(_) = tracefs() else { return };
    if !tickless_trace::cgroup::Watch::prepare(None).is_ok_and(|watch| watch.is_empty()) {
        return skip("a control group has a limit, or there are none");
    }
    let refused = tickless("record --events quota -D 1h --force -o never.txt");
    let _ = refused.exits(1, &["Name the group with --cgroup"]);
}

#[test]
fn an_unrecorded_idle_thread_is_reported() {
    let Some(_) = tracefs() else { return };
    let _alone = alone();
    let before = IdleStops::now();
    let recorded = tickless("record --force -D 2s -o idle.txt").exits(0, &[]);
    // All CPUs whose idle threads did anything.
    let idle = IdleStops::now().unseen(&before, &IdleEvents::new());
    if idle.is_empty() {
        return skip("no CPU was idle, or the kernel does not tell");
    }
    let text = fs::read_to_string(path("idle.txt")).unwrap();
    let again = tickless("replay idle.txt");
    for CpuId(cpu) in idle {
        let column = format!("[{cpu:03}]");
        let mut lines = text.lines().filter(|line| line.trim_start().starts_with("<idle>-0 "));
        let is_there = lines.any(|line| line.contains(&column) && !line.contains(".h"));
        let message = format!("CPU {cpu}'s idle thread");
        let is_told = recorded.err.contains(&message);
        assert!(is_there || is_told, "CPU {cpu}: {recorded:?}");
        assert_eq!(is_told, again.err.contains(&message), "{again:?}");
    }
}
