//! `tickless latency`, run as a user runs it.

use crate::run::{Ended, PROGRAM, fits, interrupted, json, prints};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn json_has_an_object_for_each_sleeper() {
    let sleepers = "clock_nanosleep,timerfd,hrtimer,timeout";
    let rows = json(&format!("latency -l 60 -i 2000 -h 50 --sleeper {sleepers}"));
    let rows = rows.as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["sleeper"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), sleepers);
    for row in rows {
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

#[test]
fn each_thread_makes_the_requested_wakeups() {
    for args in ["-t 3 -l 20", "-l 20 -t3"] {
        for row in json(&format!("latency -q {args}")).as_array().unwrap() {
            assert_eq!((&row["threads"], &row["samples"]), (&3.into(), &60.into()), "{row}");
        }
    }
    let [smp, each] = ["-S", "-t"].map(|args| json(&format!("latency -q -l 20 {args}")));
    assert_eq!(smp[0]["threads"], each[0]["threads"]);
    assert_eq!(smp.as_array().unwrap().len(), 5);
}

#[test]
fn a_duration_ends_the_measurement() {
    let begun = Instant::now();
    let rows = json("latency -D 200ms -i 500 --sleeper timerfd");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(150));
    let wakeups = rows[0]["samples"].as_u64().unwrap() + rows[0]["missed"].as_u64().unwrap();
    // As many as fit into that time: a busy machine may let it stop later.
    let most = took.as_micros() as u64 / 500 + 2;
    assert!((1..=most).contains(&wakeups), "{took:?} {rows:?}");
}

#[test]
fn tables_fit_a_terminal_and_have_a_plot() {
    for args in ["", "-h 40 --sleeper hrtimer"] {
        let text = prints(&format!("latency -l 100 {args}"));
        fits(text.lines());
        for word in ["hrtimer", "p99.9", "samples", "###", "1 thread,"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

/// Method: without the right to real-time priority, which only root can give up.
#[test]
fn a_priority_without_permission_is_an_error_with_advice() {
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", PROGRAM, "latency"])
        .args(["-l", "10", "-p", "50"])
        .output();
    let Ok(output) = output else { return };
    let ended = Ended::from(output);
    if !ended.err.contains("setpriv") {
        assert_eq!(ended.exits(1, &["leave the priority out"]).out, "");
    }
}

#[test]
fn an_interrupt_shows_the_results_so_far() {
    let ended = interrupted("latency -D 1h -i 1000 --format json").exits(0, &[]);
    assert!(ended.json()[0]["samples"].as_u64() > Some(0), "{ended:?}");
    assert_eq!(ended.err, "");
}
