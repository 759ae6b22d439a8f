//! `tickless replay`, and what all commands share: the messages about a wrong command line, the
//! width of tables, and a closed output.

use crate::run::{Ended, PROGRAM, fails, file, fits, json, page, path, prints, program, tickless};
use crate::support::{SAMPLES, sample_text, text_without, twice};
use std::process::{Command, Stdio};

#[test]
fn a_wrong_command_line_exits_2_with_advice() {
    file("broken.toml", "name = 'broken'\n[line]\nhit = 3\n");
    let both = "cannot be used with";
    fails(
        2,
        [
            ("", "Usage: tickless"),
            ("recall", "unrecognized subcommand"),
            ("replay", "<TRACE>"),
            ("replay a --no-such-option", "--no-such-option"),
            ("replay a --policy busy", "restart-aware"),
            ("replay a --format xml", "csv"),
            ("replay a --hz 0", "24..=1200"),
            ("replay a --hz 7", "24..=1200"),
            ("replay a --upgrade 6.12", "7.2"),
            ("replay traces/idle.txt.gz traces/nginx.txt.gz --hz 250", "--format json"),
            ("study rearm --live --sim", both),
            ("study rearm --live --quick --full", both),
            ("study rearm --live --cpus 0", "not a number from 1 to"),
            ("study rearm --live --cpus 2", "leave --cpus out"),
            ("study cancel --live --cpus 3000", "2048"),
            ("study nonsense --live", "rearm"),
            ("study rearm --sim --machine itanium2-4p", "workload.pipe_ns: missing"),
            ("machines abacus", "itanium2-32p"),
            ("machines broken.toml", "broken.toml:3: line.hit"),
            ("project a --machine broken.toml", "broken.toml:3: line.hit"),
            ("report --quick --full", both),
            ("report --sim-only --live-only", both),
            ("report --only nonsense", "rearm"),
            ("latency -i 0", "1..="),
            ("latency -p 100", "1..=99"),
            ("latency -S -t 2", both),
            ("latency -D 0", "no time"),
            ("latency -D soon", "not a time"),
            ("latency -l 0", "1.."),
            ("latency --limit p99", "p99=200us"),
            ("latency --limit p98=1us", "is none of min, avg, p50"),
            ("latency --limit p99=1", "not a time"),
            ("latency --limit sundial.p99=1us", "sleepers are clock_nanosleep"),
            ("latency --sleeper sundial", "timerfd"),
            ("latency -h", "a value is required"),
            ("doctor --check nonsense", "idle-ticks"),
            ("top --once --batch 2", both),
            ("top --batch 0", "--batch"),
            ("record -o a.dat --events late", "lacks what late and quota need"),
            ("record --cgroup /a -o none.txt", "--events"),
            ("record --events late --cgroup /a -o none.txt", "belongs to --events quota"),
            ("quota traces/bursts.txt.gz --limit 0", "not a number of CPUs"),
            ("quota traces/bursts.txt.gz --burst 101", "from 0 to 100"),
            ("project a --machine nothing", "there is no machine nothing"),
            ("project a --machine=host --cpus=0", "0 CPUs; ask for 1 to 4096"),
            ("project a --machine=host --cpus=4-2", "goes down"),
            ("project a --machine=host --seconds=0", "--seconds 0 is no time"),
            ("project a --machine=host --clock=sundial", "sundial"),
            ("completions nonsense", "bash"),
        ],
    );
}

/// The crate that reads traces tests all causes.
#[test]
fn an_unusable_file_exits_1_with_advice() {
    fails(
        1,
        [
            ("replay nowhere", "tickless: nowhere: "),
            ("replay nowhere", "Check the name"),
            ("replay .", "Name a file, not a directory"),
            ("replay traces/bursts.txt.gz --hz 250", "--hz needs the CPUs' ticks"),
            ("replay traces/idle.txt.gz --upgrade 7.2", "Record also -e sched:sched_switch"),
            ("replay /no/such/*", "Check the pattern"),
            ("man nonsense", "tickless help"),
            ("man --dir /proc/nowhere", "Name another place"),
            ("record -o /no/such/place", "/no/such/place: cannot be written"),
            ("record --events quota --cgroup /no/such/group -o none.txt", "no control group has"),
            ("quota traces/bursts.txt.gz --html /nowhere/a.html", "/nowhere/a.html"),
            ("quota traces/bursts.txt.gz --cgroup /other", "which has: /bursts"),
            ("top", "--once"),
            ("fleet /no/such/*", "Check the pattern"),
        ],
    );
    assert!(!path("none.txt").exists());
}

#[test]
fn csv_has_a_header_and_a_line_for_each_policy() {
    let text = prints("replay traces/idle.txt.gz --format csv");
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
fn tables_fit_a_terminal() {
    let replay = |sample: &str, columns| {
        let mut command = program(&format!("replay traces/{sample}.txt.gz"));
        command.env("COLUMNS", columns).env("CLICOLOR_FORCE", "1").env("TERM", "xterm");
        Ended::of(command.env_remove("NO_COLOR")).out
    };
    for sample in SAMPLES {
        let text = replay(sample, "200");
        fits(text.lines());
        let lines: Vec<&str> = text.lines().collect();
        let screen = lines[lines.len() - 24..].join("\n");
        for word in ["restart-aware", "recorded", "How late", "Agreement: ", "%."] {
            assert!(screen.contains(word), "{sample}, {word}:\n{screen}");
        }
        for word in ["What the kernel did", "Armed most", "spurious", "queue", "wheel"] {
            assert!(text.contains(word), "{sample}, {word}:\n{text}");
        }
    }
    let narrow = replay("idle", "50");
    let mut tables = narrow.lines().skip(1).filter(|line| !line.ends_with(':'));
    assert!(tables.all(|line| line.chars().count() <= 50), "{narrow}");
    for word in ["restart-aware", "1018", "hrtimer_wakeup"] {
        assert!(narrow.contains(word), "{word}: {narrow}");
    }
    // Two groups of periodic timers on a strip.
    let strip = " recorded |...........................2......................| nearest 115 us";
    let shown = replay("two-groups-aligned", "80");
    assert!(shown.lines().any(|line| line == strip), "{shown}");
    assert!(page("replay").contains(strip), "docs/book/src/replay.md shows another strip");
}

#[test]
fn other_ticks_are_in_the_table() {
    let line = "replay traces/pipe-two-cpus.txt.gz --hz 250 --hz 1000";
    let table = prints(line);
    fits(table.lines());
    for tick in json(line)["ticks"].as_array().unwrap() {
        let state = if tick["stopped"] == true { "stopped" } else { "running" };
        let (name, writes) = (format!("{} Hz, {state}", tick["hz"]), &tick["device_writes"]);
        let row = table.lines().find(|row| row.trim_start().starts_with(&name)).unwrap();
        assert!(row.contains(&writes.to_string()), "{table}");
    }
}

#[test]
fn an_upgrade_is_in_the_table() {
    let line = "replay traces/kernels/6.12-ping00.txt.gz --upgrade 7.2";
    let table = prints(line);
    fits(table.lines());
    for result in json(line)["upgrade"].as_array().unwrap() {
        let state = if result["slice_timer"] == true { "on" } else { "off" };
        let (name, writes) = (format!("slice timer {state}"), &result["device_writes"]);
        let row = table.lines().find(|row| row.trim_start().starts_with(&name)).unwrap();
        assert!(row.contains(&writes.to_string()), "{table}");
        assert!(page("replay").lines().any(|line| line == row), "the book shows another {row}");
    }
}

#[test]
fn strict_exits_3_unless_the_replay_agrees_with_a_sound_recording() {
    let text = sample_text("pipe-two-cpus");
    file("twice.txt", twice(&text));
    file("no-writes.txt", text_without(&sample_text("pipe-one-cpu"), "write_msr"));
    let sample = "replay traces/pipe-one-cpu.txt.gz";
    for (line, messages, shown) in [
        (
            format!("{sample} --no-inference"),
            &["replayed, 700 recorded: more than 5 % off"][..],
            "Agreement: ",
        ),
        ("replay no-writes.txt".into(), &["Record msr:write_msr"], "Agreement: unknown"),
        (
            "replay twice.txt".into(),
            &["the trace has lines twice", "cannot have happened like that"],
            "not to be trusted: ",
        ),
    ] {
        let strict = tickless(&format!("{line} --strict")).exits(3, messages);
        assert!(strict.out.contains(shown), "{strict:?}");
        assert_eq!(prints(&line), strict.out);
    }
    assert_eq!(tickless(&format!("{sample} --strict")).exits(0, &[]).err, "");
    let lazy = json("replay traces/idle.txt.gz --policy lazy --strict");
    assert_eq!(lazy["policies"].as_array().unwrap().len(), 1);
    assert_eq!(lazy["agreement"]["policy"], "restart-aware");
}

#[test]
fn a_closed_output_causes_no_panic_and_no_message() {
    for format in ["table", "json", "csv"] {
        let line = format!("replay traces/pipe-two-cpus.txt.gz --format {format}");
        let mut child = program(&line).spawn().unwrap();
        // The pipe's other end is closed long before the trace is read.
        drop(child.stdout.take());
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""), "{format}");
    }
    for (redirected, status, message) in [
        ("traces/idle.txt.gz >&-", 0, ""),
        ("traces/idle.txt.gz >/dev/full", 1, "tickless: cannot write the results: "),
        // Standard error is closed while there is something to write.
        ("nowhere 2>&-", 1, ""),
        ("nowhere 2>/dev/full", 1, ""),
    ] {
        let script = format!("'{PROGRAM}' replay {redirected}");
        let mut shell = Command::new("sh");
        let ended = Ended::of(shell.args(["-c", &script]).current_dir(path("")));
        assert!(ended.exits(status, &[]).err.starts_with(message), "{redirected}");
    }
}

#[test]
fn several_traces_are_one_table() {
    let table = prints("replay traces/pipe-*.txt.gz traces/idle.txt.gz");
    let rows: Vec<&str> = table.lines().map(str::trim_start).collect();
    for (at, start) in [(1, "pipe-one-cpu"), (2, "pipe-two-cpus"), (3, "idle"), (4, "total")] {
        assert!(rows[at].starts_with(start), "{table}");
    }
    let last = |row: &str| row.split_whitespace().last().unwrap().parse::<u64>().unwrap();
    assert_eq!(last(rows[4]), (1..4).map(|at| last(rows[at])).sum::<u64>(), "{table}");
    let one = tickless("replay traces/idle.txt.gz nowhere").exits(1, &["nowhere"]);
    assert!(one.out.contains("total"));
    let idle = std::fs::File::open(path("traces/idle.txt.gz")).unwrap();
    let piped = Ended::of(program("replay -").stdin(Stdio::from(idle))).out;
    let named = prints("replay traces/idle.txt.gz");
    let rest = |text: &str| text.split_once(": ").unwrap().1.to_string();
    assert_eq!(rest(&piped), rest(&named));
}
