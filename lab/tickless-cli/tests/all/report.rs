//! `tickless report`, run as a user runs it.

use crate::run::{Ended, PROGRAM, interrupted, page, path, tickless};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Returns the page and the results in a folder, which must have no other files.
fn files(folder: &str) -> (String, Value) {
    assert_eq!(fs::read_dir(path(folder)).unwrap().count(), 2);
    let [html, json] = ["report.html", "report.json"]
        .map(|name| fs::read_to_string(path(folder).join(name)).unwrap());
    (html, serde_json::from_str(&json).unwrap())
}

#[test]
fn a_report_writes_two_files_with_the_documented_keys() {
    let _ = fs::remove_dir_all(path("report-whole"));
    let line = "report --quick --only cancel rearm --seed 7 --out report-whole";
    let Ended { out, err, .. } = tickless(line).exits(0, &[]);
    for word in ["report.html", "report.json", "29000 -> 95", "7.20 -> 5.32", "quick report"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let (html, json) = files("report-whole");
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>"), "half a page");
    assert!(html.contains("<section id=\"cancel\">") && !html.contains("<section id=\"clock\">"));
    let page = page("report");
    for (place, want) in [
        ("", "date effort machine schema seconds seed studies verdicts version"),
        ("/machine", "clock_source cpu cpus disturbance kernel load"),
        ("/studies/0", "live sim study"),
        ("/studies/0/live", "error result seconds"),
        ("/verdicts/0", "live mechanism published sides simulated study"),
        ("/verdicts/0/simulated", "after before checked outside unit"),
    ] {
        let object = json.pointer(place).and_then(Value::as_object).unwrap();
        let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys.join(" "), want, "{place}");
        let missing = keys.iter().find(|key| !page.contains(&format!("`{key}`")));
        assert_eq!(missing, None, "docs/book/src/report.md lacks it");
    }
    assert!(err.lines().all(|line| line.contains("times as long")), "a bar: {err}");
    assert_eq!((&json["schema"], &json["seed"]), (&1.into(), &7.into()));
    assert_eq!(json["studies"][0]["study"], "rearm", "the order of the seeds");
    assert_eq!(json["studies"][1]["live"]["result"]["world"], "live");
}

/// It is shown with advice, and the exit status is 1. Method: too few open files for the pipes.
#[test]
fn a_failed_study_is_shown_and_the_others_run() {
    let _ = fs::remove_dir_all(path("report-fails"));
    let line = "report --quick --only rearm -o report-fails/report.html";
    let script = format!("ulimit -n 5; exec '{PROGRAM}' {line}");
    let mut shell = Command::new("sh");
    let said = Ended::of(shell.args(["-c", &script]).current_dir(path(""))).exits(1, &[]).out;
    assert!(said.contains("rearm, live, FAILED: ") && said.contains("ulimit"), "{said}");
    let (html, json) = files("report-fails");
    assert!(html.contains("The live study failed.") && html.contains("ulimit -n"));
    assert!(html.contains("5.32<sup"), "the simulated part is there");
    assert!(json["studies"][0]["live"]["result"].is_null());
    assert!(json["studies"][0]["sim"]["error"].is_null());
}

#[test]
fn a_report_that_cannot_be_written_leaves_nothing() {
    let _ = fs::remove_dir_all(path("report-interrupted"));
    let line = "report --full --live-only --only rearm -o report-interrupted/a";
    let out = interrupted(line).exits(130, &[]).out;
    assert_eq!(out, "");
    assert!(!path("report-interrupted").exists(), "an empty folder is left");
    fs::create_dir_all(path("report-nowhere/report.html")).unwrap();
    let words = ["cannot write the report", "--output"];
    let _ = tickless("report --full --out report-nowhere").exits(1, &words);
}
