//! The built program, run as a user runs it.

use crate::run::{PROGRAM, file, keys_named_on, page, stderr, stdout, tickless};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::support::{SAMPLES, sample_path, sample_text, text_without};
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

fn replay(sample: &str, more: &[&str]) -> Output {
    let path = sample_path(sample);
    tickless(&[&["replay", path.to_str().unwrap()], more].concat())
}

#[test]
fn a_wrong_command_line_exits_2_with_advice() {
    let both = "cannot be used with";
    for (args, advice) in [
        (&[][..], "Usage: tickless"),
        (&["recall"], "unrecognized subcommand"),
        (&["replay"], "<TRACE>"),
        (&["replay", "a", "--no-such-option"], "--no-such-option"),
        (&["replay", "a", "--policy", "busy"], "restart-aware"),
        (&["replay", "a", "--format", "xml"], "csv"),
        (&["study", "rearm", "--live", "--sim"], both),
        (&["study", "rearm", "--live", "--quick", "--full"], both),
        (&["study", "rearm", "--live", "--cpus", "0"], "not a number from 1 to"),
        (&["study", "rearm", "--live", "--cpus", "2"], "leave --cpus out"),
        (&["study", "nonsense", "--live"], "rearm"),
        (&["study", "rearm", "--live", "--format", "xml"], "csv"),
        (&["report", "--quick", "--full"], both),
        (&["report", "--sim-only", "--live-only"], both),
        (&["report", "--only", "nonsense"], "rearm"),
        (&["latency", "-i", "0"], "1..="),
        (&["latency", "-p", "100"], "1..=99"),
        (&["latency", "-S", "-t", "2"], both),
        (&["latency", "-D", "0"], "no time"),
        (&["latency", "-D", "soon"], "not a time"),
        (&["latency", "-l", "0"], "1.."),
        (&["latency", "--limit", "p99"], "p99=200us"),
        (&["latency", "--sleeper", "sundial"], "timerfd"),
        (&["latency", "-h"], "a value is required"),
        (&["doctor", "--check", "nonsense"], "idle-ticks"),
        (&["top", "--once", "--batch", "2"], both),
        (&["top", "--batch", "0"], "--batch"),
        (&["completions", "nonsense"], "bash"),
    ] {
        let output = tickless(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            output.stdout.is_empty() && stderr(&output).contains(advice),
            "{args:?}: {output:?}"
        );
    }
}

/// Method: a rich trace, and one of a single line where every field that may be null is null.
#[test]
fn every_key_of_a_replay_is_on_its_page() {
    let single = file("single.txt", "# a\n a-1 [000]  1.000001: hrtimer_cancel: hrtimer=00ab\n");
    let single = tickless(&["replay", single.to_str().unwrap(), "--format", "json"]);
    for (output, is_rich) in [(replay("idle", &["--format", "json"]), true), (single, false)] {
        assert_eq!(output.status.code(), Some(0));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let places = ["", "/trace", "/trace/recorded", "/policies/0", "/operations/wheel"];
        let rich = ["/policies/2/wheel_lateness_ns", "/top_functions/0", "/agreement"];
        for place in places.iter().chain(rich.iter().filter(|_| is_rich)) {
            keys_named_on("replay", json.pointer(place).unwrap());
        }
        let policies = json["policies"].as_array().unwrap();
        let names: Vec<&str> = policies.iter().map(|p| p["policy"].as_str().unwrap()).collect();
        assert_eq!(names, ["eager", "lazy", "restart-aware"]);
        assert_eq!(json["agreement"].is_null(), !is_rich);
        assert_eq!(json["trace"]["recorded"]["device_writes"].is_null(), !is_rich);
        assert!(json["inference"].as_bool().unwrap());
    }
}

#[test]
fn csv_has_a_header_and_a_line_for_each_policy() {
    let text = stdout(&replay("idle", &["--format", "csv"]));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert!(text.starts_with(
        "policy,device_writes,wakeups,expirations,spurious_wakeups,early,lateness_p50_ns,"
    ));
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, ["policy", "eager", "lazy", "restart-aware", "recorded"]);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    assert_eq!(rows[3][1], rows[4][1]);
}

#[test]
fn a_single_policy_is_compared_with_the_recording() {
    let output = replay("idle", &["--policy", "lazy", "--format", "json", "--strict"]);
    assert_eq!(output.status.code(), Some(0));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["policies"].as_array().unwrap().len(), 1);
    assert_eq!(json["agreement"]["policy"], "restart-aware");
}

/// The last screen has the most important results, and there is no colour.
#[test]
fn tables_fit_a_terminal() {
    for sample in SAMPLES {
        let output = Command::new(PROGRAM)
            .args(["replay", sample_path(sample).to_str().unwrap()])
            .envs([("CLICOLOR_FORCE", "1"), ("COLUMNS", "80"), ("TERM", "xterm")])
            .env_remove("NO_COLOR")
            .output()
            .unwrap();
        let text = stdout(&output);
        // The first line names the file, however long its path is.
        for line in text.lines().skip(1) {
            assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{sample}: {line:?}");
        }
        assert!(!text.contains('\u{1b}'));
        let lines: Vec<&str> = text.lines().collect();
        let screen = lines[lines.len() - 24..].join("\n");
        for word in ["restart-aware", "recorded", "How late", "Agreement: ", "%."] {
            assert!(screen.contains(word), "{sample}, {word}:\n{screen}");
        }
        for word in ["What the kernel did", "Armed most", "spurious", "queue", "wheel"] {
            assert!(text.contains(word), "{sample}, {word}:\n{text}");
        }
    }
}

#[test]
fn an_unusable_file_exits_1_with_advice() {
    let text = sample_text("pipe-two-cpus");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    let garbage: Vec<u8> = (0..5_000).map(|_| noise()).collect();
    let no_timer =
        "# tracer: nop\n a-1 [000] .....  1.000001: tick_stop: success=1 dependency=NONE\n";
    let cases = [
        (PathBuf::from("no such file"), "Check the name"),
        (PathBuf::from(env!("CARGO_TARGET_TMPDIR")), "Name a file, not a directory"),
        (file("empty.txt", ""), "Record a trace"),
        (file("garbage.bin", garbage), "trace-cmd report"),
        (file("head-only.txt.gz", &packed[..40]), "Copy the file again"),
        (file("no-timer.txt", no_timer), "Record timer:*"),
        (file("trace.dat", b"\x17\x08\x44tracing6\0\0\0\0\0\0"), "a trace.dat that ends too early"),
        (file("perf.data", b"PERFILE2\0\0\0\0\0\0\0\0"), "a perf.data that ends too early"),
    ];
    for (path, advice) in cases {
        let output = tickless(&["replay", path.to_str().unwrap()]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(output.stdout.is_empty(), "{message}");
        assert!(message.starts_with("tickless: "), "{message}");
        assert!(message.contains(path.to_str().unwrap()), "{message}");
        assert!(message.contains(advice), "{message} lacks {advice}");
    }
}

/// The undamaged part of the trace is used. Messages are on standard error only.
#[test]
fn each_cause_of_damage_is_reported_once() {
    let text = sample_text("pipe-two-cpus");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let cut = file("cut.txt.gz", &packed[..packed.len() / 2]);
    let rubbish: String = text.lines().map(|line| format!("{line}\nrubbish\n")).collect();
    for (path, cause, lines) in
        [(cut, "the gzip data ends early", 3), (file("rubbish.txt", rubbish), "line skipped", 1)]
    {
        let output = tickless(&["replay", path.to_str().unwrap(), "--format", "json"]);
        assert_eq!(output.status.code(), Some(0));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["operations"]["start"].as_u64().unwrap() > 10);
        let messages = stderr(&output);
        assert_eq!(messages.matches(cause).count(), 1, "{messages}");
        assert!(messages.lines().count() <= lines, "{messages}");
        let named = |line: &str| line.starts_with(&format!("tickless: {}", path.display()));
        assert!(messages.lines().all(named), "{messages}");
    }
    assert!(stderr(&replay("pipe-two-cpus", &[])).is_empty());
}

#[test]
fn strict_exits_3() {
    assert_eq!(replay("pipe-one-cpu", &["--strict"]).status.code(), Some(0));
    let off = replay("pipe-one-cpu", &["--strict", "--no-inference"]);
    assert_eq!(off.status.code(), Some(3));
    assert!(stderr(&off).contains("replayed, 700 recorded: more than 5 % off"), "{}", stderr(&off));
    assert!(!off.stdout.is_empty());
    assert_eq!(replay("pipe-one-cpu", &["--no-inference"]).status.code(), Some(0));
    let text = text_without(&sample_text("pipe-one-cpu"), "write_msr");
    let path = file("no-writes.txt", text);
    let unknown = tickless(&["replay", path.to_str().unwrap(), "--strict"]);
    assert_eq!(unknown.status.code(), Some(3));
    assert!(stderr(&unknown).contains("Record msr:write_msr"), "{}", stderr(&unknown));
    assert!(stdout(&unknown).contains("Agreement: unknown"));
}

#[test]
fn a_closed_output_causes_no_panic_and_no_message() {
    let path = sample_path("pipe-two-cpus");
    let path = path.to_str().unwrap();
    for format in ["table", "json", "csv"] {
        let mut child = Command::new(PROGRAM)
            .args(["replay", path, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The pipe's other end is closed long before the trace is read.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{format}");
    }
    let shell = |script: &str| {
        Command::new("sh").args(["-c", script, "sh", PROGRAM, path]).output().unwrap()
    };
    let output = shell("\"$1\" replay \"$2\" >&-");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    // Standard error is closed while there is something to say.
    for script in ["\"$1\" replay nowhere 2>&-", "\"$1\" replay nowhere 2>/dev/full"] {
        assert_eq!(shell(script).status.code(), Some(1), "{script}");
    }
    if PathBuf::from("/dev/full").exists() {
        let output = shell("\"$1\" replay \"$2\" >/dev/full");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).starts_with("tickless: cannot write the results: "));
    }
}

#[test]
fn tables_show_two_groups_of_periodic_timers_on_a_strip() {
    let page = page("replay");
    let output = replay("two-groups-aligned", &[]);
    let strip = " recorded |...........................2......................| nearest 115 us";
    let shown = stdout(&output);
    assert!(shown.lines().any(|line| line == strip), "{shown}");
    assert!(page.contains(strip), "docs/book/src/replay.md shows another strip");
}

/// The message names the damage. Without `--strict` it is printed too, and the replay succeeds.
#[test]
fn strict_fails_on_a_trace_that_cannot_have_happened() {
    let text = sample_text("pipe-two-cpus");
    let twice: String = text
        .lines()
        .map(|line| match line.starts_with('#') {
            true => format!("{line}\n"),
            false => format!("{line}\n{line}\n"),
        })
        .collect();
    let path = file("twice.txt", twice);
    let path = path.to_str().unwrap();
    let strict = tickless(&["replay", path, "--strict"]);
    assert_eq!(strict.status.code(), Some(3));
    for word in ["the trace has lines twice", "cannot have happened like that"] {
        assert!(stderr(&strict).contains(word), "{word}: {}", stderr(&strict));
    }
    assert!(stdout(&strict).contains("not to be trusted: "), "{}", stdout(&strict));
    assert_eq!(tickless(&["replay", path]).status.code(), Some(0));
}

/// Nothing is lost in it.
#[test]
fn tables_and_sentences_fit_a_narrow_terminal() {
    let path = sample_path("idle");
    let shown = |columns: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["replay", path.to_str().unwrap()]).env("COLUMNS", columns);
        stdout(&command.output().unwrap())
    };
    let (wide, narrow) = (shown("200"), shown("50"));
    assert!(wide.lines().skip(1).all(|line| line.chars().count() <= 80), "{wide}");
    let tables = narrow.lines().skip(1).filter(|line| !line.ends_with(':'));
    assert!(tables.clone().all(|line| line.chars().count() <= 50), "{narrow}");
    for word in ["restart-aware", "1018", "hrtimer_wakeup"] {
        assert!(narrow.contains(word), "{word}: {narrow}");
    }
}

#[test]
fn a_study_is_simulated_by_default() {
    let output = tickless(&["study", "rearm", "--quick", "--format", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["world"], "sim");
}

/// Each trace is a row, and there is a total. A pattern is expanded, standard input is a trace,
/// and an unusable trace is reported and has no row.
#[test]
fn several_traces_are_one_table() {
    let traces = sample_path("idle").parent().unwrap().to_path_buf();
    let run = |args: &[&str]| Command::new(PROGRAM).arg("replay").args(args).output().unwrap();
    let pattern = traces.join("pipe-*.txt.gz");
    let idle = sample_path("idle");
    let output = run(&[pattern.to_str().unwrap(), idle.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let table = stdout(&output);
    let rows: Vec<&str> = table.lines().map(str::trim_start).collect();
    for (at, start) in [(1, "pipe-one-cpu"), (2, "pipe-two-cpus"), (3, "idle"), (4, "total")] {
        assert!(rows[at].starts_with(start), "{table}");
    }
    let last = |row: &str| row.split_whitespace().last().unwrap().parse::<u64>().unwrap();
    assert_eq!(last(rows[4]), (1..4).map(|at| last(rows[at])).sum::<u64>(), "{table}");
    let output = run(&[idle.to_str().unwrap(), "/no/such/trace"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("total"));
    assert_eq!(run(&["/no/such/*"]).status.code(), Some(1));
    let file = std::fs::File::open(&idle).unwrap();
    let piped = Command::new(PROGRAM).args(["replay", "-"]).stdin(Stdio::from(file)).output();
    let piped = String::from_utf8(piped.unwrap().stdout).unwrap();
    let named = String::from_utf8(run(&[idle.to_str().unwrap()]).stdout).unwrap();
    let rest = |text: &str| text.split_once(": ").unwrap().1.to_string();
    assert_eq!(rest(&piped), rest(&named));
}

#[test]
fn a_timeline_is_written_for_one_trace_only() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("timeline.json");
    let file = file.to_str().unwrap();
    let output = replay("idle", &["--timeline", file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = std::fs::read(file).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    assert!(document["traceEvents"].as_array().unwrap().len() > 1_000);
    let idle = sample_path("idle");
    assert_eq!(
        replay("idle", &[idle.to_str().unwrap(), "--timeline", file]).status.code(),
        Some(2)
    );
    assert_eq!(replay("idle", &["--timeline", "/no/such/place"]).status.code(), Some(1));
}
