//! `tickless latency`, run as a user runs it.

use crate::live::interrupted;
use crate::run::{PROGRAM, keys_named_on, stderr, stdout, tickless};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn latency(args: &[&str]) -> Output {
    tickless(&[&["latency"], args].concat())
}

fn rows(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// It has the documented keys, its figures are consistent, and no wakeup is early (W1).
#[test]
fn json_has_an_object_for_each_sleeper() {
    let sleepers = "clock_nanosleep,timerfd,hrtimer,timeout";
    let args = ["-l", "60", "-i", "2000", "-h", "50", "--format", "json", "--sleeper", sleepers];
    let rows = rows(&latency(&args));
    let names: Vec<&str> = rows.iter().map(|row| row["sleeper"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), sleepers);
    for row in rows {
        keys_named_on("latency", &row);
        assert_eq!((row["samples"].as_u64(), row["early"].as_u64()), (Some(60), Some(0)), "{row}");
        let ns = ["min", "p50", "p99", "p999", "max"].map(|key| row[key].as_u64().unwrap());
        assert!(ns.is_sorted() && ns[4] > 0, "{row}");
        let avg = row["avg"].as_f64().unwrap();
        assert!(ns[0] as f64 <= avg && avg <= ns[4] as f64 * 1.001, "{row}");
        let buckets = row["histogram"]["counts"].as_array().unwrap();
        let counted: u64 = buckets.iter().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(counted + row["histogram"]["above"].as_u64().unwrap(), 60, "{row}");
        assert_eq!(buckets.len(), 50);
        // 500 a second were asked for, each of them a wait.
        let rate = row["wakeups_per_s"].as_f64().unwrap();
        assert!(rate > 0.0 && row["cpu_percent"].as_f64() >= Some(0.0), "{row}");
    }
}

/// `-t` without a number and `-S` mean each CPU.
#[test]
fn each_thread_makes_the_requested_wakeups() {
    let rows_of = |args: &[&str]| rows(&latency(&[args, &["-q", "--json"]].concat()));
    for (args, threads) in [(&["-t", "3", "-l", "20"][..], 3), (&["-l", "20", "-t3"], 3)] {
        for row in rows_of(args) {
            assert_eq!(row["threads"], threads, "{row}");
            assert_eq!(row["samples"], 20 * threads, "{row}");
        }
    }
    let smp = rows_of(&["-S", "-l", "20"]);
    assert_eq!(smp[0]["threads"], rows_of(&["-l", "20", "-t"])[0]["threads"]);
    assert_eq!(smp.len(), 5);
}

#[test]
fn a_duration_ends_the_measurement() {
    let begun = Instant::now();
    let rows = rows(&latency(&["-D", "200ms", "-i", "500", "--json", "--sleeper", "timerfd"]));
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(150));
    let samples = rows[0]["samples"].as_u64().unwrap();
    let missed = rows[0]["missed"].as_u64().unwrap();
    // As many as fit into that time: a busy machine may let it stop later.
    let most = took.as_micros() as u64 / 500 + 2;
    assert!((1..=most).contains(&(samples + missed)), "{took:?} {rows:?}");
}

#[test]
fn tables_fit_a_terminal_and_have_a_plot() {
    for args in [&["-l", "100"][..], &["-l", "100", "-h", "40", "--sleeper", "hrtimer"]] {
        let text = stdout(&latency(args));
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{line:?}");
        }
        for word in ["hrtimer", "p99.9", "samples", "###", "1 thread,"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

/// A limit that is kept is silent.
#[test]
fn an_exceeded_limit_is_named_and_exits_3() {
    let args = ["-l", "20", "--format", "csv"];
    let kept = latency(&[&args[..], &["--limit", "p50=1h", "--limit", "hrtimer.max=1h"]].concat());
    assert_eq!((kept.status.code(), stderr(&kept).as_str()), (Some(0), ""));
    let text = stdout(&kept);
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let fields = csv.headers().unwrap().len();
    assert!(csv.records().all(|row| row.unwrap().len() == fields), "{text}");
    let broken = latency(&[&args[..], &["--limit", "timerfd.p50=1ns"]].concat());
    assert_eq!(broken.status.code(), Some(3));
    let message = stderr(&broken);
    assert!(message.starts_with("tickless: timerfd: p50 must be at most 0.001 us"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn results_go_to_a_file_if_asked() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("latency.json");
    let output = latency(&["-l", "10", &format!("--json={}", path.display())]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("clock_nanosleep"));
    let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(rows.len(), 5);
    let nowhere = latency(&["-l", "10", "--json=/nowhere/latency.json"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(stderr(&nowhere).contains("/nowhere/latency.json"), "{}", stderr(&nowhere));
}

/// Method: without the right to real-time priority, which only root can give up.
#[test]
fn a_priority_without_permission_is_an_error_with_advice() {
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", PROGRAM, "latency"])
        .args(["-l", "10", "-p", "50"])
        .output();
    let Ok(output) = output else { return };
    let message = stderr(&output);
    if message.contains("setpriv") {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("leave the priority out"), "{message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn an_interrupt_shows_the_results_so_far() {
    let latency = ["latency", "-D", "1h", "-i", "1000", "--json"];
    let output = interrupted(Command::new(PROGRAM).args(latency));
    let rows = rows(&output);
    assert!(rows[0]["samples"].as_u64() > Some(0), "{rows:?}");
    assert_eq!(stderr(&output), "");
}

/// Method: both cases set the effect of SIGHUP, because these tests may run under nohup, and a
/// shell cannot stop ignoring a signal that was ignored when it began.
#[test]
fn a_hangup_ends_the_program_unless_nohup_started_it() {
    let hung_up_after = |how: &str, long: &str| {
        let start = Instant::now();
        let latency = ["latency", "-D", long, "-q", "--sleeper", "timerfd", "--json"];
        let child = Command::new("env")
            .args([how, PROGRAM])
            .args(latency)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
        assert_eq!(rows(&child.wait_with_output().unwrap()).len(), 1);
        start.elapsed()
    };
    assert!(hung_up_after("--ignore-signal=HUP", "2") >= Duration::from_secs(2));
    // It ends.
    hung_up_after("--default-signal=HUP", "1h");
}

/// A figure without samples is null.
#[test]
fn a_limit_without_samples_exits_2() {
    let args = ["--sleeper", "timerfd", "-i", "1000000", "-D", "50ms", "--format", "json"];
    let unlimited = latency(&args);
    assert_eq!(rows(&unlimited)[0]["samples"], 0);
    for key in ["min", "avg", "p50", "p99", "p999", "max"] {
        assert!(rows(&unlimited)[0][key].is_null(), "{key}");
    }
    let limited = latency(&[&args[..], &["--limit", "max=1h"]].concat());
    assert_eq!(limited.status.code(), Some(2));
    assert!(stderr(&limited).contains("it never woke"), "{}", stderr(&limited));
    let other = latency(&["--sleeper", "hrtimer", "-l", "3", "--limit", "timerfd.max=1h"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("add --sleeper timerfd"), "{}", stderr(&other));
    let table = latency(&["--sleeper", "timerfd", "-i", "1000000", "-D", "50ms"]);
    assert!(stdout(&table).lines().any(|line| line.contains(" -  ")), "{}", stdout(&table));
}
