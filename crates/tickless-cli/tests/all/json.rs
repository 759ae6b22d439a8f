//! The JSON of every command against `docs/json.md`: each key that is printed is on the page with
//! its type, and each key on the page is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::support::sample_path;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tickless");

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    std::fs::read_to_string(page).unwrap()
}

/// What a command prints.
fn json(args: &[&str]) -> Value {
    let output = Command::new(PROGRAM).args(args).args(["--format", "json"]).output().unwrap();
    let is_judged = matches!(output.status.code(), Some(0 | 3));
    assert!(is_judged, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// By path, the types that stand there.
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

/// What the page says of a command.
fn documented(section: &str) -> BTreeMap<String, BTreeSet<String>> {
    let page = page();
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| {
        panic!("docs/json.md has no section {section}");
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

/// Compares both ways. A list that is a whole document has no path of its own.
fn compare(section: &str, documents: &[Value]) {
    let mut printed = Types::new();
    documents.iter().for_each(|document| types(document, "", &mut printed));
    printed.remove("");
    let documented = documented(section);
    let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        names(printed.keys().collect()),
        names(documented.keys().collect()),
        "printed by {section}, and in docs/json.md"
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

/// Goal: replay's keys, whatever a trace has. Method: a rich trace, one with overlap, one of a
/// single line where all that may be null is null, and one that cannot have happened.
#[test]
fn replay_prints_what_is_documented() {
    let single = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("json-single.txt");
    std::fs::write(&single, "# a\n a-1 [000]  1.000001: hrtimer_cancel: hrtimer=00ab\n").unwrap();
    let damaged = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("json-damaged.txt");
    std::fs::write(&damaged, a_damaged_sleeper()).unwrap();
    let traces = [sample_path("idle"), sample_path("two-groups-aligned"), single, damaged];
    let documents = traces.map(|trace| json(&["replay", trace.to_str().unwrap()]));
    compare("replay", &documents);
}

#[test]
fn studies_print_what_is_documented() {
    let live = json(&["study", "rearm", "--live", "--quick"]);
    let sim = json(&["study", "phase", "--sim", "--quick"]);
    let cancel = json(&["study", "cancel", "--sim", "--quick"]);
    // For the other forms of plots.
    let deferred = json(&["study", "deferred", "--live", "--quick"]);
    let phase = json(&["study", "phase", "--live", "--quick"]);
    compare("study", &[live, sim, cancel, deferred, phase]);
}

/// Method: a trace whose sleeps are seen to end, and which has no softirqs.
#[test]
fn late_prints_what_is_documented() {
    let trace = sample_path("pipe-two-cpus");
    let args = ["late", trace.to_str().unwrap(), "--threshold", "1us"];
    compare("late", &[json(&args)]);
}

#[test]
fn latency_prints_what_is_documented() {
    compare(
        "latency",
        &[json(&["latency", "-l", "20"]), json(&["latency", "-l", "20", "-h", "3"])],
    );
}

/// Goal: doctor's keys; a check that cannot be seen, and one that can.
#[test]
fn doctor_prints_what_is_documented() {
    let mut document = json(&["doctor", "-D", "50ms", "--check", "timer-slack"]);
    assert!(document[0]["figure"].is_number(), "{document}");
    let nowhere = json(&["doctor", "-D", "50ms", "--check", "idle-ticks,tick-wakers"]);
    document.as_array_mut().unwrap().extend(nowhere.as_array().unwrap().clone());
    compare("doctor", &[document]);
}

/// Goal: every command that has results takes the same formats.
#[test]
fn formats_are_the_same_everywhere() {
    for command in ["replay", "study", "late", "latency", "doctor"] {
        let output = Command::new(PROGRAM).args(["help", command]).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let (_, format) = help.split_once("--format").unwrap_or_else(|| panic!("{command}"));
        for word in ["- table:", "- json:", "- csv:", "[default: table]"] {
            assert!(format.contains(word), "{command}: {word}");
        }
    }
}
