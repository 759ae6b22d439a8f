//! The JSON of every command against `docs/book/src/json.md`: each key that is printed is on the
//! page with its type, and each key on the page is printed.

use crate::run::{file, json, page, program};
use crate::study::quick;
use crate::support::{sample_text, text_without, twice};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

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

fn table(section: &str) -> Vec<Vec<String>> {
    let page = page("json");
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| {
        panic!("docs/book/src/json.md has no section {section}");
    });
    let section = rest.split("\n## ").next().unwrap();
    let cells = |row: &str| row.split(" | ").map(str::to_string).collect();
    section.lines().filter_map(|line| line.strip_prefix("| ")).map(cells).collect()
}

/// Compares both directions. A list that is a whole document has no path of its own.
pub fn compare(section: &str, documents: &[Value]) {
    let mut printed = Types::new();
    documents.iter().for_each(|document| types(document, "", &mut printed));
    printed.remove("");
    let rows = table(section);
    let types_of = |row: &Vec<String>| {
        Some((row[0].strip_prefix('`')?.strip_suffix('`')?.to_string(), row[1].clone()))
    };
    let documented: BTreeMap<String, String> = rows.iter().filter_map(types_of).collect();
    assert_eq!(
        printed.keys().collect::<Vec<_>>(),
        documented.keys().collect::<Vec<_>>(),
        "printed by {section}, and in docs/book/src/json.md"
    );
    for (path, kinds) in &printed {
        for kind in kinds {
            let is_known = documented[path].split(" or ").any(|one| one == *kind);
            assert!(is_known, "{section}: {path} is {kind}");
        }
    }
}

/// Method: a rich trace, one with overlapping periods, one of a single line where every field that
/// may be null is null, and one that cannot have happened.
#[test]
fn replay_prints_what_is_documented() {
    file("single.txt", "# a\n a-1 [000]  1.000001: hrtimer_cancel: hrtimer=00ab\n");
    file("damaged.txt", twice(&sample_text("pipe-two-cpus")));
    let traces =
        ["traces/idle.txt.gz", "traces/two-groups-aligned.txt.gz", "single.txt", "damaged.txt"];
    let mut documents = traces.map(|trace| json(&format!("replay {trace}"))).to_vec();
    documents.push(json("replay traces/idle.txt.gz --hz 100"));
    documents.push(json("replay traces/pipe-two-cpus.txt.gz --upgrade 7.2"));
    let no_wheel = text_without(&sample_text("idle"), ": timer_");
    file("no-wheel.txt", no_wheel);
    documents.push(json("replay no-wheel.txt --hz 100"));
    compare("replay", &documents);
}

#[test]
fn studies_print_what_is_documented() {
    let studies = [
        ("rearm", "--live"),
        ("phase", "--sim"),
        ("cancel", "--sim"),
        ("deferred", "--live"),
        ("phase", "--live"),
    ];
    let study = |(name, world)| serde_json::from_str(&quick(name, world, "json")).unwrap();
    compare("study", &studies.map(study));
}

/// Method: callbacks and processes, with both kinds of null, while a process has timers with a
/// period that expire together. On a busy machine it can take that process a while to begin.
#[test]
fn top_prints_what_is_documented() {
    let Some(_) = crate::live::tracefs() else { return };
    let mut periodic = program("latency -q --sleeper timerfd -i 5000 -t 4 -D 1h").spawn().unwrap();
    let line = "top --once -i 500ms";
    let mut seen = std::iter::repeat_with(|| json(line)).take(20);
    let has_met = |it: &Value| it["rows"].to_string().contains(r#""with":[""#);
    let documents = [seen.find(has_met).unwrap(), json(&format!("{line} -c"))];
    periodic.kill().unwrap();
    let _ = periodic.wait().unwrap();
    compare("top", &documents);
}

#[test]
fn compare_prints_what_is_documented() {
    let write = |name: &str, document: Value| file(name, document.to_string());
    write("a.json", json("replay traces/idle.txt.gz"));
    write("b.json", json("replay traces/nginx.txt.gz"));
    for (name, sleeper, p50) in [("c.json", "x", 0), ("d.json", "y", 0), ("late.json", "x", 5)] {
        write(name, json!([{"sleeper": sleeper, "by_turn": vec![json!({"p50": p50}); 2]}]));
    }
    let pairs = ["a.json b.json", "c.json d.json", "c.json late.json"];
    compare("compare", &pairs.map(|pair| json(&format!("compare {pair}"))));
}

/// Method: for `late`, a trace in which sleeps end, without softirqs, and with a group that is
/// seldom throttled; for `doctor`, a check whose result is unknown, and one whose result is known;
/// for `project`, as many CPUs as the trace has, and more.
#[test]
fn other_commands_print_what_is_documented() {
    // With a limit that throttled it, and so many delays that no limit suffices.
    let limit = "{\"quota_us\":9000,\"period_us\":10000,\"burst_us\":0}";
    let bursts = sample_text("bursts").replace("\"limit\":null", &format!("\"limit\":{limit}"));
    file("limited.txt", bursts.replace("\"throttled\":0", "\"throttled\":1"));
    let seldom = r##"# cgroup {"path":"/a","limit":null,"counters":{"periods":60,"throttled":1,
        "stood_ns":9},"threads":[7]}"##;
    file("seldom.txt", sample_text("pipe-two-cpus") + &seldom.replace('\n', "") + "\n");
    for (section, lines) in [
        ("late", &["late seldom.txt --threshold 1us"][..]),
        (
            "quota",
            &["quota traces/bursts.txt.gz", "quota limited.txt --cpus 1 --limit 0.5 --delay 0ms"],
        ),
        ("latency", &["latency -l 20", "latency -l 20 -h 3"]),
        (
            "doctor",
            &[
                "doctor -D 50ms --check timer-slack",
                "doctor -D 50ms --check idle-ticks,tick-wakers",
            ],
        ),
        ("machines", &["machines"]),
        ("machine", &["machines host", "machines x5675-2s"]),
        ("project", &["project traces/idle.txt.gz --machine host --cpus 2,4 --seconds 100"]),
    ] {
        compare(section, &lines.iter().map(|line| json(line)).collect::<Vec<_>>());
    }
}

#[test]
fn tables_of_sweeps_have_the_documented_columns_in_order() {
    let rows = table("Rows of a sweep");
    let names: Vec<&str> = rows[1..].iter().map(|row| row[0].as_str()).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.serialize(tickless_fleet::row::Row::default()).unwrap();
    let csv = String::from_utf8(writer.into_inner().unwrap()).unwrap();
    assert_eq!(csv.lines().next().unwrap(), names.join(","));
}
