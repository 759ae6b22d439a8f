//! The JSON of every command against `docs/book/src/json.md`: each key that is printed is on the
//! page with its type, and each key on the page is printed.

use crate::run::{PROGRAM, file, json, page, path, prints, stderr, tickless};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::study::quick;
use crate::support::sample_path;
use serde_json::Value;

/// The types of the values at each path.
type Types = BTreeMap<String, BTreeSet<&'static str>>;

fn types(value: &Value, path: &str, found: &mut Types) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    found.entry(path.to_string()).or_default().insert(kind);
    match value {
        Value::Array(elements) => {
            elements.iter().for_each(|element| types(element, &format!("{path}[]"), found));
        }
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            let dot = if path.is_empty() { "" } else { "." };
            types(member, &format!("{path}{dot}{key}"), found);
        }),
        _ => {}
    }
}

/// The types at each path that the page documents for a command.
fn documented(section: &str) -> BTreeMap<String, BTreeSet<String>> {
    let page = page("json");
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| {
        panic!("docs/book/src/json.md has no section {section}");
    });
    let section = rest.split("\n## ").next().unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let path = cells.next()?.trim_end_matches('`').to_string();
        let types = cells.next()?.split(" or ").map(str::to_string).collect();
        Some((path, types))
    };
    section.lines().filter_map(row).collect()
}

/// Compares both directions. A list that is a whole document has no path of its own.
pub fn compare(section: &str, documents: &[Value]) {
    let mut printed = Types::new();
    documents.iter().for_each(|document| types(document, "", &mut printed));
    printed.remove("");
    let documented = documented(section);
    let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        names(printed.keys().collect()),
        names(documented.keys().collect()),
        "printed by {section}, and in docs/book/src/json.md"
    );
    for (path, kinds) in &printed {
        for kind in kinds {
            assert!(documented[path].contains(*kind), "{section}: {path} is {kind}");
        }
    }
}

/// A thread that sleeps a millisecond at a time, every line twice.
fn a_damaged_sleeper() -> String {
    let mut text = "# tracer: nop\n# kernel 6.18.0 HZ=250 clock=mono\n".to_string();
    for at in 1..50_u64 {
        let ns = at * 1_000_000;
        let due = ns + 1_000_000;
        for _ in 0..2 {
            text += &format!(
                " a-7 [000] d..1.  0.{at:03}010: hrtimer_start: hrtimer=01 function=hrtimer_wakeup \
                 expires={due} softexpires={due} mode=ABS was_armed=0\n \
                 a-7 [000] d..1.  0.{at:03}011: write_msr: 6e0, value 1\n"
            );
        }
        text += &format!(
            " <idle>-0 [000] d.h1.  0.{:03}001: hrtimer_expire_entry: hrtimer=01 \
             function=hrtimer_wakeup now={due}\n",
            at + 1
        );
    }
    text
}

/// Method: a rich trace, one with overlapping periods, one of a single line where every field that
/// may be null is null, and one that cannot have happened.
#[test]
fn replay_prints_what_is_documented() {
    let single = "# a\n a-1 [000]  1.000001: hrtimer_cancel: hrtimer=00ab\n";
    let single = file("json-single.txt", single);
    let damaged = file("json-damaged.txt", a_damaged_sleeper());
    let traces = [sample_path("idle"), sample_path("two-groups-aligned"), single, damaged];
    let documents = traces.map(|trace| json(&["replay", trace.to_str().unwrap()]));
    compare("replay", &documents);
}

#[test]
fn studies_print_what_is_documented() {
    let study =
        |name, world| -> Value { serde_json::from_str(&quick(name, world, "json")).unwrap() };
    let live = study("rearm", "--live");
    let sim = study("phase", "--sim");
    let cancel = study("cancel", "--sim");
    // For the other forms of plots.
    let deferred = study("deferred", "--live");
    let phase = study("phase", "--live");
    compare("study", &[live, sim, cancel, deferred, phase]);
}

/// Method: a trace in which sleeps end, and which has no softirqs.
#[test]
fn late_prints_what_is_documented() {
    let trace = sample_path("pipe-two-cpus");
    let args = ["late", trace.to_str().unwrap(), "--threshold", "1us"];
    compare("late", &[json(&args)]);
}

/// Method: callbacks and processes, with both kinds of null.
#[test]
fn top_prints_what_is_documented() {
    if crate::live::tracefs("top_prints_what_is_documented").is_none() {
        return;
    }
    let sleeper = std::thread::spawn(|| {
        (0..1_500).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    });
    let args = ["top", "--once", "-i", "500ms", "--source", "tracefs"];
    let mut processes = json(&args);
    // As on a kernel that does not record an idle thread.
    processes["unseen_idle"] = serde_json::json!([1]);
    compare("top", &[processes, json(&[&args[..], &["-c"]].concat())]);
    sleeper.join().unwrap();
}

#[test]
fn compare_prints_what_is_documented() {
    let write = |name: &str, document: &Value| {
        file(name, document.to_string()).to_str().unwrap().to_string()
    };
    let trace = |name| json(&["replay", sample_path(name).to_str().unwrap()]);
    let (a, b) = (write("a.json", &trace("idle")), write("b.json", &trace("nginx")));
    let sleeper = |name: &str| serde_json::json!([{"sleeper": name, "p50": 0, "missed": 0}]);
    let (c, d) = (write("c.json", &sleeper("x")), write("d.json", &sleeper("y")));
    let late = serde_json::json!([{"sleeper": "x", "p50": 5, "missed": 0}]);
    let late = write("late.json", &late);
    let documents = [[&a, &b], [&c, &d], [&c, &late]].map(|[a, b]| json(&["compare", a, b]));
    compare("compare", &documents);
    // And its verdicts.
    let status = |args: &[&str]| {
        let output = tickless(&[&["compare"], args].concat());
        (output.status.code(), stderr(&output))
    };
    let (code, message) = status(&[&c, &late, "--fail-above", "10%"]);
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("x.p50"), "{message}");
    assert_eq!(status(&[&late, &c, "--fail-above", "10%"]).0, Some(0), "it shrank");
    assert_eq!(status(&[&a, &late]).0, Some(1), "two kinds");
    assert_eq!(status(&[&a, &b, "--html", "/dev/null"]).0, Some(1), "no reports");
    let cell = serde_json::json!({"id": "x", "unit": "ns", "value": 5, "low": 5, "high": 5});
    let study = serde_json::json!({"study": "clock", "sim": {"result": {"cells": [cell]}}});
    let report = write("report.json", &serde_json::json!({"studies": [study]}));
    let html = path("moved.html");
    assert_eq!(status(&[&report, &report, "--html", html.to_str().unwrap()]).0, Some(0));
    let html = std::fs::read_to_string(html).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("clock.sim.x"), "{html}");
    assert_eq!(status(&[&report, &report, "--html", "/no/such/place"]).0, Some(1));
    assert_eq!(status(&[&a, "/no/such/file"]).0, Some(1));
}

#[test]
fn latency_prints_what_is_documented() {
    compare(
        "latency",
        &[json(&["latency", "-l", "20"]), json(&["latency", "-l", "20", "-h", "3"])],
    );
}

/// Method: a check whose result is unknown, and one whose result is known.
#[test]
fn doctor_prints_what_is_documented() {
    let mut document = json(&["doctor", "-D", "50ms", "--check", "timer-slack"]);
    assert!(document[0]["figure"].is_number(), "{document}");
    let nowhere = json(&["doctor", "-D", "50ms", "--check", "idle-ticks,tick-wakers"]);
    document.as_array_mut().unwrap().extend(nowhere.as_array().unwrap().clone());
    compare("doctor", &[document]);
}

/// Method: as many CPUs as the trace has, and more.
#[test]
fn project_prints_what_is_documented() {
    let trace = sample_path("idle");
    let args = ["project", trace.to_str().unwrap(), "--machine", "host", "--cpus", "2,4"];
    let whole = ["--seconds", "100"];
    compare("project", &[json(&[&args[..], &whole].concat())]);
}

/// Method: usable traces, and one that is not.
#[test]
fn fleet_prints_what_is_documented() {
    let traces = ["idle", "nginx"].map(sample_path);
    let [one, other] = [&traces[0], &traces[1]].map(|path| path.to_str().unwrap());
    compare("fleet", &[json(&["fleet", one, other, "/no/such/trace"])]);
}

#[test]
fn sweep_status_prints_what_is_documented() {
    let place = std::env::temp_dir().join(format!("tickless-json-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let (spec, out) = (place.join("campaign.toml"), place.join("out"));
    let text = "[simulate]\nstudies = ['rearm']\nmachines = ['x5675-2s']\npolicies = ['lazy']\n\
                rounds = 10";
    std::fs::write(&spec, text).unwrap();
    let [spec, folder] = [&spec, &out].map(|path| path.to_str().unwrap());
    let swept = Command::new(PROGRAM).args(["sweep", spec, "--out", folder]).status();
    assert!(swept.unwrap().success());
    compare("sweep status", &[json(&["sweep", "status", folder])]);
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn merged_tables_have_the_documented_columns_in_order() {
    let page = page("json");
    let (_, section) = page.split_once("\n## Rows of a campaign\n").unwrap();
    let names = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names: Vec<&str> = names.filter(|name| *name != "column").collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.serialize(tickless_fleet::row::Row::default()).unwrap();
    let csv = String::from_utf8(writer.into_inner().unwrap()).unwrap();
    assert_eq!(csv.lines().next().unwrap(), names.join(","));
}

#[test]
fn every_command_with_results_has_the_same_formats() {
    for command in
        ["replay", "study", "late", "latency", "doctor", "top", "project", "compare", "fleet"]
    {
        let help = prints(&["help", command]);
        let (_, format) = help.split_once("--format").unwrap_or_else(|| panic!("{command}"));
        for word in ["- table:", "- json:", "- csv:", "[default: table]"] {
            assert!(format.contains(word), "{command}: {word}");
        }
    }
}
