//! `tickless doctor`, run as a user runs it, with pathologies planted in this machine.

use crate::live::{alone, leaves_nothing, skip, tracefs, without_rights};
use crate::run::{Ended, PROGRAM, fits, json, page, tickless};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tickless_lab::studies::checks;

fn findings(document: &Value) -> &[Value] {
    document.as_array().unwrap()
}

#[test]
fn json_has_a_finding_for_each_check() {
    let _alone = alone();
    let ended = tickless("doctor -D 300ms --format json");
    let (json, page) = (ended.json(), page("doctor"));
    let names: Vec<&str> = findings(&json).iter().map(|f| f["check"].as_str().unwrap()).collect();
    assert_eq!(names, checks().into_iter().map(|check| check.name).collect::<Vec<_>>());
    for finding in findings(&json) {
        let name = finding["check"].as_str().unwrap();
        assert!(page.contains(&format!("`{name}`")), "docs/book/src/doctor.md lacks {name}");
        let verdict = finding["verdict"].as_str().unwrap();
        assert!(["ok", "warn", "bad", "unknown"].contains(&verdict), "{finding}");
        // A source may be judged by its name where it could not be timed.
        assert!(finding["figure"].is_number() || verdict == "unknown", "{finding}");
        assert!(!finding["how"].as_str().unwrap().is_empty(), "{finding}");
    }
    let is_bad = findings(&json).iter().any(|finding| finding["verdict"] == "bad");
    assert_eq!(ended.status, Some(if is_bad { 3 } else { 0 }));
}

#[test]
fn only_the_chosen_checks_are_printed() {
    let _alone = alone();
    let line = "doctor --check timer-slack,clock-source --strict";
    let csv = tickless(&format!("{line} --format csv")).out;
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows[0], "check,verdict,figure,unit,how,advice,study");
    assert!(rows[1].starts_with("clock-source,") && rows[2].starts_with("timer-slack,"), "{csv}");
    assert_eq!(rows.len(), 3);
    let text = tickless(line).out;
    assert!(text.contains("clock-source") && text.contains("timer-slack"), "{text}");
    fits(text.lines());
}

#[test]
fn a_terminal_has_colours_unless_no_color_is_set() {
    let _alone = alone();
    for (no_color, is_coloured) in [(None, true), (Some("1"), false)] {
        let line = format!("{PROGRAM} doctor --check timer-slack");
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
        script.envs(no_color.map(|value| ("NO_COLOR", value))).stdin(Stdio::null());
        let Ok(output) = script.output() else {
            return skip("there is no script(1) to make a terminal");
        };
        let shown = Ended::from(output).out;
        assert_eq!(shown.contains("\u{1b}[32mok"), is_coloured, "{no_color:?}: {shown:?}");
    }
}

#[test]
fn without_rights_findings_are_unknown_with_their_reason() {
    let _alone = alone();
    let Some(ended) = without_rights("doctor -D 100ms --format json") else { return };
    for finding in findings(&ended.json()) {
        match finding["check"].as_str().unwrap() {
            "rearm-writes" | "rearm-removals" | "timer-cancels" | "tick-wakers"
            | "aligned-timers" => {
                assert_eq!(finding["verdict"], "unknown", "{finding}");
                assert!(finding["figure"].is_null(), "{finding}");
                assert!(finding["how"].as_str().unwrap().contains("root"), "{finding}");
            }
            "clock-source" | "timer-slack" => assert!(finding["figure"].is_number(), "{finding}"),
            _ => {}
        }
    }
}

#[test]
fn a_thread_that_sleeps_a_millisecond_at_a_time_is_named() {
    let Some(_) = tracefs() else { return };
    let _alone = alone();
    let stop = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let waker = thread::Builder::new().name("planted-waker".to_string());
        let sleep = || {
            let _ = tickless_lab::measure::sleep_with_slack(1);
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_micros(700));
            }
        };
        waker.spawn_scoped(scope, sleep).unwrap();
        // A machine that is busy enough lets it sleep through ticks.
        let found = (0..20).any(|_| {
            let seen = &json("doctor -D 500ms --check tick-wakers")[0];
            let is_named = seen["how"].as_str().unwrap().contains("planted-waker");
            is_named && ["warn", "bad"].contains(&seen["verdict"].as_str().unwrap())
        });
        stop.store(true, Ordering::Relaxed);
        found
    });
    assert!(found);
}

#[test]
fn an_interrupt_leaves_no_tracefs_instance() {
    let Some(tracefs) = tracefs() else { return };
    let _alone = alone();
    let _ = leaves_nothing(&tracefs, "doctor -D 1h --check rearm-writes", "-INT").exits(130, &[]);
}
