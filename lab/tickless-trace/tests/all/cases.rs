//! Traces made by hand, each with the right answer worked out by hand: the files in `tests/cases`,
//! whose README has their form.

use crate::support::{HEADER, history};
use serde_json::{Value, json};
use std::fmt::Display;
use tickless_core::time::Ns;
use tickless_trace::Trace;
use tickless_trace::late::{SeenWakeup, Selection, explain, explain_wakeup};
use tickless_trace::quota::{Request, predict};
use tickless_trace::read::Record;
use tickless_trace::replay::{Inference, ReplayPolicy, other_ticks, summarise, upgraded};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");

/// `CASES=write` writes the answers that are found now into the files.
#[test]
fn hand_made_traces_have_the_answers_worked_out_by_hand() {
    let (mut count, mut wrong) = (0, String::new());
    for name in ["damage", "formats", "gaps", "late", "quota", "replay", "ticks", "upgrade"] {
        let path = format!("{FOLDER}/{name}.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (mut trace, mut now) = (String::new(), String::new());
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            now += &format!("{line}\n");
            let Some(head) = line.strip_prefix("```") else { continue };
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let (kind, options) = head.split_once(' ').unwrap_or((head, ""));
            let options: Vec<&str> = options.split("; ").filter(|it| !it.is_empty()).collect();
            let mut found: Vec<String> = body.iter().map(ToString::to_string).collect();
            if kind == "trace" || kind == "text" {
                trace = if kind == "trace" { HEADER.to_string() } else { String::new() };
                body.iter().for_each(|line| trace += &written(line));
            } else {
                count += 1;
                found = answer(kind, &options, &changed(&trace, &options), &body);
            }
            if found != body {
                let was = body.join("\n");
                wrong += &format!("{path}: {head}\n{was}\nis now\n{}\n\n", found.join("\n"));
            }
            found.iter().for_each(|line| now += &format!("{line}\n"));
            now += "```\n";
        }
        if std::env::var_os("CASES").is_some_and(|asked| asked == "write") {
            std::fs::write(&path, now).unwrap();
        }
    }
    assert!(count > 100 && wrong.is_empty(), "{count} answers\n{wrong}");
}

/// Returns the lines of a trace for a line of a case: steps of [`history`], a file of `tests/data`,
/// or the line as it is.
fn written(line: &str) -> String {
    if let Some(name) = line.strip_prefix("< ") {
        return String::from_utf8(crate::support::data(name)).unwrap();
    }
    match line.starts_with(|first: char| first.is_ascii_digit()) {
        true => history(line)
            .replace("dd function=f", "dd function=hrtick")
            .replace("ee function=f", "ee function=tick_nohz_handler"),
        false => format!("{line}\n"),
    }
}

/// Returns the text without the lines that have what a `d/TEXT/` names, and with what `s/OLD/NEW/`
/// replaces, in which another character may take the place of the slash.
fn changed(text: &str, options: &[&str]) -> String {
    let mut text = text.to_string();
    for option in options {
        let Some(mark) = option.chars().nth(1) else { continue };
        match option.split(mark).collect::<Vec<_>>()[..] {
            ["d", word, ""] => text = crate::support::text_without(&text, word),
            ["s", old, new, ""] => text = text.replace(old, new),
            _ => {}
        }
    }
    text
}

fn answer(kind: &str, options: &[&str], text: &str, body: &[&str]) -> Vec<String> {
    let told = |error: &dyn Display| -> Vec<String> {
        error.to_string().lines().map(str::to_string).collect()
    };
    let trace = match Trace::parse("t.txt", text.as_bytes()) {
        Ok(trace) => trace,
        Err(error) if kind == "refused" => return told(&error),
        Err(error) => panic!("{error}\n{text}"),
    };
    let given = |name: &str| options.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
    let text_of = |name: &str| given(name).map(str::to_string);
    let selection = Selection {
        process: text_of("process"),
        pid: given("pid").map(|pid| pid.parse().unwrap()),
        thread: text_of("thread"),
        folds: options.contains(&"folds"),
    };
    let inference = if options.contains(&"no-inference") { Inference::Off } else { Inference::On };
    let document = match kind {
        "events" => return events(&trace),
        "messages" => return trace.messages().collect(),
        "late" => json!(explain(&trace, Ns(200_000), &selection)),
        "wakeup" => {
            let ns = |name: &str| Ns(given(name).unwrap().parse().unwrap());
            let (deadline, seen) = (ns("deadline"), ns("seen"));
            let thread = selection.pid.unwrap();
            json!(explain_wakeup(&trace, SeenWakeup { thread, deadline, seen }))
        }
        "quota" => {
            let limits = given("limit").unwrap_or("1").split(',');
            let request = Request {
                cgroup: text_of("cgroup"),
                selection,
                without: text_of("without").into_iter().collect(),
                cpus: given("cpus").map(|cpus| cpus.parse().unwrap()).into_iter().collect(),
                limits: limits.filter_map(|limit| limit.parse().ok()).collect(),
                bursts_percent: given("burst").map(|it| it.parse().unwrap()).into_iter().collect(),
                delay: Ns(1_000_000),
                delayed_percent_max: 1.0,
                ..Request::default()
            };
            match predict(&trace, &request) {
                Ok(prediction) => json!(prediction),
                Err(error) => return told(&error),
            }
        }
        "ticks" => {
            let rates: Vec<u32> = options[0].split(',').map(|rate| rate.parse().unwrap()).collect();
            json!(other_ticks(&trace, inference, &rates).unwrap())
        }
        "read" => json!({
            "cpus": trace.cpus,
            "hz": trace.hz,
            "kernel": trace.header.kernel,
            "monotonic_ahead_ns": trace.monotonic_ahead_ns,
            "span_ns": trace.span().0,
            "jiffies": format!("{:?}", trace.jiffies),
            "gaps": trace.gaps.len(),
            "events": trace.records.len(),
            "skipped_lines": trace.skipped_lines,
            "dropped_events": trace.dropped_events,
        }),
        "upgrade" => json!(upgraded(&trace, inference).unwrap()),
        "replay" => json!(summarise(&trace, &ReplayPolicy::ALL, inference)),
        other => panic!("no kind {other}"),
    };
    body.iter().map(|line| shown(&document, line)).collect()
}

/// Returns a line of an answer, `PATH VALUE`, with the value that the document has. `KEYS of PATH`
/// are the values of a list's elements, as many elements as the line has.
fn shown(document: &Value, line: &str) -> String {
    let (path, value) = line.split_once(": ").unwrap_or((line, ""));
    let found = match path.split_once(" of ") {
        None => document.pointer(&format!("/{path}")).unwrap_or(&Value::Null).to_string(),
        Some((key, list)) => {
            let list = if list == "all" { "" } else { &format!("/{list}") };
            let elements = document.pointer(list).and_then(Value::as_array).unwrap();
            let values = elements.iter().map(|element| element[key].to_string());
            values.take(value.split(' ').count()).collect::<Vec<_>>().join(" ")
        }
    };
    format!("{path}: {found}")
}

fn events(trace: &Trace) -> Vec<String> {
    let event = |record: &Record| {
        let mut event = format!("{:?}", record.event);
        for (number, name) in trace.names.iter().enumerate() {
            event = event.replace(&format!("NameId({number})"), name);
        }
        let Record { time, cpu, context, pid, .. } = record;
        let task = trace.tasks.get(pid).map_or("?", |name| name);
        format!("{} CPU {} {context:?} {task}-{pid}: {event}", time.0, cpu.0)
    };
    trace.records.iter().map(event).collect()
}
