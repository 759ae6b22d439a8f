//! Helpers of several tests.
#![allow(dead_code)]

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tickless_trace::read::{Context, Event, NameId, Record, Trace};
use tickless_trace::replay::{Inference, PolicyResult, ReplayPolicy, Summary, summarise};

/// The committed traces, in the order of tables.
pub const SAMPLES: [&str; 5] =
    ["idle", "nginx", "pipe-one-cpu", "pipe-two-cpus", "two-groups-aligned"];

pub fn sample_text(name: &str) -> String {
    // Other crates, which have no folder `tests/data`, use this file, too.
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    String::from_utf8(unpacked(&traces.join(format!("{name}.txt.gz")))).unwrap()
}

pub fn data(name: &str) -> Vec<u8> {
    unpacked(&data_path(name))
}

fn unpacked(path: &Path) -> Vec<u8> {
    let file = std::fs::read(path).unwrap();
    let mut whole = Vec::new();
    match MultiGzDecoder::new(&file[..]).read_to_end(&mut whole) {
        Ok(_) => whole,
        Err(_) => file,
    }
}

pub fn data_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Takes from an event what a text of perf lacks: what the CPU was executing, and whether a timer
/// is deferrable. Returns the function, which a perf.data has no name of.
pub fn strip(record: &mut Record) -> NameId {
    (record.line, record.context) = (0, Context::NotRecorded);
    if let Event::TimerStart { is_deferrable, .. } = &mut record.event {
        *is_deferrable = false;
    }
    record.event.function().map_or(NameId::UNKNOWN, std::mem::take)
}

pub fn recorded(name: &str) -> Trace {
    Trace::read(&data_path(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that a line of the book's page on replays is this one.
pub fn assert_documented(row: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/replay.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.lines().any(|line| line == row), "docs/book/src/replay.md lacks\n{row}");
}

pub fn replay(text: &str) -> Summary {
    replay_with(text, Inference::On)
}

pub fn replay_with(text: &str, inference: Inference) -> Summary {
    summarise(&parsed(text), &ReplayPolicy::DEFAULT, inference)
}

pub fn parsed(text: impl AsRef<[u8]>) -> Trace {
    Trace::parse("t.txt", text.as_ref()).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the next random number of 31 bits.
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *state >> 33
}

pub fn all<T>(summary: &Summary, of: impl Fn(&PolicyResult) -> T) -> [T; 3] {
    let names: Vec<&str> = summary.policies.iter().map(|result| result.policy).collect();
    assert_eq!(names, ["eager", "lazy", "restart-aware"]);
    std::array::from_fn(|place| of(&summary.policies[place]))
}

pub fn writes(summary: &Summary) -> [u64; 3] {
    all(summary, |result| result.device_writes)
}

pub fn wakeups(summary: &Summary) -> [u64; 3] {
    all(summary, |result| result.wakeups)
}

pub fn spurious(summary: &Summary) -> [u64; 3] {
    all(summary, |result| result.spurious_wakeups)
}

pub fn fired(summary: &Summary) -> [u64; 3] {
    all(summary, |result| result.expirations)
}

/// The first lines of a trace whose clock is CLOCK_MONOTONIC.
pub const HEADER: &str = "# tracer: nop\n# kernel 6.18.0 HZ=250 clock=mono\n";

pub fn line(at_us: u64, cpu: u16, flags: &str, event: &str) -> String {
    line_of("a-1", at_us, cpu, flags, event)
}

pub fn line_of(task: &str, at_us: u64, cpu: u16, flags: &str, event: &str) -> String {
    let (seconds, micros) = (at_us / 1_000_000, at_us % 1_000_000);
    format!(" {task} [{cpu:03}] {flags}  {seconds}.{micros:06}: {event}\n")
}

/// Returns the lines of a history: steps with times and expiries in microseconds. `10 start A 200`
/// arms hrtimer A at 10 for 200; `start@1` does so on CPU 1. `restart` arms a pending timer,
/// `rearm` arms one in the interrupt handler, and `interrupt A` is an interrupt that fires A.
/// `expire A` has the handler's current time behind it, if that is not the time of the step.
/// `switch 1 2` switches from thread 1 to thread 2, `switch 1R 2` while 1 could run on. `wakes 2`
/// wakes thread 2.
pub fn history(steps: &str) -> String {
    let mut text = String::new();
    for step in steps.split("; ") {
        let words: Vec<&str> = step.split(' ').collect();
        let (verb, cpu) = words[1].split_once('@').unwrap_or((words[1], "0"));
        let (at, cpu): (u64, u16) = (words[0].parse().unwrap(), cpu.parse().unwrap());
        let name = words.get(2).map_or(String::new(), |name| name.to_lowercase());
        let timer = format!("00000000000000{name}{name}");
        let number = words.get(3).map(|word| word.parse::<u64>().unwrap());
        let start = |armed| {
            let ns = number.unwrap() * 1_000;
            format!(
                "hrtimer_start: hrtimer={timer} function=f expires={ns} softexpires={ns} mode=ABS \
                 was_armed={armed}"
            )
        };
        let enter = (at, "d.h1.", "local_timer_entry: vector=236".to_string());
        let leave = |at| (at, "d.h1.", "local_timer_exit: vector=236".to_string());
        let expire = |at: u64| {
            let now = number.unwrap_or(at) * 1_000;
            let event = format!("hrtimer_expire_entry: hrtimer={timer} function=f now={now}");
            (at, "d.h1.", event)
        };
        let returned = |at| (at, "d.h1.", format!("hrtimer_expire_exit: hrtimer={timer}"));
        let events = match verb {
            "start" => vec![(at, "d..1.", start(0))],
            "restart" => vec![(at, "d..1.", start(1))],
            "rearm" => vec![(at, "d.h2.", start(0))],
            "cancel" => vec![(at, "d..1.", format!("hrtimer_cancel: hrtimer={timer}"))],
            "write" => vec![(at, "d.h1.", "write_msr: 6e0, value 1".to_string())],
            "enter" => vec![enter],
            "expire" => vec![expire(at)],
            "returned" => vec![returned(at)],
            "leave" => vec![leave(at)],
            "interrupt" => vec![enter, expire(at + 1), returned(at + 2), leave(at + 3)],
            "switch" => {
                let (from, to) = (words[2].trim_end_matches('R'), words[3]);
                let state = if words[2].ends_with('R') { 'R' } else { 'S' };
                let event = format!(
                    "sched_switch: prev_comm=a prev_pid={from} prev_prio=120 prev_state={state} \
                     ==> next_comm=b next_pid={to} next_prio=120"
                );
                text += &line_of(&format!("a-{from}"), at, cpu, "d..2.", &event);
                vec![]
            }
            "wakes" => {
                let woken = format!("comm=a pid={} prio=120 target_cpu=000", words[2]);
                vec![(at, "d..2.", format!("sched_wakeup: {woken}"))]
            }
            "end" => vec![(at, ".....", "tick_stop: success=1 dependency=NONE".to_string())],
            other => panic!("{other}"),
        };
        events.iter().for_each(|(at, flags, event)| text += &line(*at, cpu, flags, event));
    }
    text
}

/// Returns the text with each event twice.
pub fn twice(text: &str) -> String {
    let copies = |line: &str| format!("{line}\n").repeat(if line.starts_with('#') { 1 } else { 2 });
    text.lines().map(copies).collect()
}

pub fn text_without(text: &str, word: &str) -> String {
    let kept = text.lines().filter(|line| !line.contains(word));
    kept.fold(String::new(), |text, line| text + line + "\n")
}

/// Returns the text without the flags column, as perf and trace-cmd 2 print it.
pub fn without_flags(text: &str) -> String {
    let without = |line: &str| match line.split_once("] ") {
        Some((task, rest)) if !line.starts_with('#') => {
            format!("{task}] {}\n", rest.split_once(' ').unwrap().1)
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(without).collect()
}

/// Returns the text of a kernel without `mode` and `was_armed`, which prints a cancel before each
/// expiry and each restart.
pub fn older_kernel(text: &str) -> String {
    let mut old = String::new();
    for line in text.lines() {
        if line.contains(": hrtimer_expire_entry: ") || line.contains(" was_armed=1") {
            let (before, event) = line.split_once(": hrtimer_").unwrap();
            let timer = event.split(' ').find(|word| word.starts_with("hrtimer=")).unwrap();
            writeln!(old, "{before}: hrtimer_cancel: {timer}").unwrap();
        }
        let line = match line.split_once(" mode=") {
            Some((before, _)) if line.contains(": hrtimer_start: ") => before,
            _ => line,
        };
        writeln!(old, "{}", line.replace("hrtimer_setup", "hrtimer_init")).unwrap();
    }
    old
}
