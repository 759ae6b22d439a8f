//! `tickless report`, run as a user runs it.

use crate::live::interrupted;
use crate::run::{PROGRAM, keys_named_on, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test run that is not there yet.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn report(out: &Path, args: &[&str]) -> Output {
    Command::new(PROGRAM).args(["report", "--out"]).arg(out).args(args).output().unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// There is no other file, and the verdicts are printed.
#[test]
fn a_report_writes_two_files_with_the_documented_keys() {
    let out = folder("report-whole");
    let output = report(&out, &["--quick", "--only", "cancel", "rearm", "--seed", "7"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "a bar where there is no terminal");
    assert_eq!(files(&out), ["report.html", "report.json"]);
    let said = stdout(&output);
    for word in ["report.html", "report.json", "29000 -> 95", "7.20 -> 5.32", "quick report"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>"), "half a page");
    assert!(html.contains("<section id=\"cancel\">") && !html.contains("<section id=\"clock\">"));

    let json: Value =
        serde_json::from_str(&fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    #[rustfmt::skip]
    let objects: [(&str, &[&str]); 5] = [
        ("", &[
            "date", "effort", "machine", "schema", "seconds", "seed", "studies", "verdicts",
            "version",
        ]),
        ("/machine", &["clock_source", "cpu", "cpus", "disturbance", "kernel", "load"]),
        ("/studies/0", &["live", "sim", "study"]),
        ("/studies/0/live", &["error", "result", "seconds"]),
        ("/verdicts/0", &["live", "mechanism", "published", "sides", "simulated", "study"]),
    ];
    for (place, want) in objects {
        let keys = keys_named_on("report", json.pointer(place).unwrap());
        assert_eq!(keys, want.iter().copied().collect(), "{place}");
    }
    let figures = &json["verdicts"][0]["simulated"];
    let keys: Vec<&String> = figures.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["after", "before", "checked", "outside", "unit"]);
    assert_eq!((&json["schema"], &json["seed"]), (&1.into(), &7.into()));
    assert_eq!(json["studies"][0]["study"], "rearm", "the order of the seeds");
    assert_eq!(json["studies"][1]["live"]["result"]["world"], "live");
}

/// It is shown with advice, and the exit status is 1. Method: so few open files that the ping-pong
/// has no pipes.
#[test]
fn a_failed_study_is_shown_and_the_others_run() {
    let out = folder("report-fails");
    let script = format!(
        "ulimit -n 5; exec '{PROGRAM}' report --quick --only rearm --out '{}'",
        out.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let said = stdout(&output);
    assert!(said.contains("rearm, live, FAILED: ") && said.contains("ulimit"), "{said}");
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("The live study failed.") && html.contains("ulimit -n"));
    assert!(html.contains("5.32<sup"), "the simulated part is there");
    let json: Value =
        serde_json::from_str(&fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    assert!(json["studies"][0]["live"]["result"].is_null());
    assert!(json["studies"][0]["sim"]["error"].is_null());
}

#[test]
fn an_interrupt_ends_a_report_without_files() {
    let out = folder("report-interrupted");
    let report = ["report", "--full", "--live-only", "--only", "rearm", "--out"];
    let output = interrupted(Command::new(PROGRAM).args(report).arg(&out));
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!((output.stdout, files(&out)), (Vec::new(), Vec::new()));
}

#[test]
fn an_unwritable_place_is_refused_before_measuring() {
    let out = folder("report-nowhere");
    fs::create_dir_all(out.join("report.html")).unwrap();
    let output = report(&out, &["--full"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("cannot write the report") && said.contains("--out"), "{said}");
}
