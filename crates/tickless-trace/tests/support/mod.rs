//! Helpers of several tests.
#![allow(dead_code)]

use std::fmt::Write;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::MultiGzDecoder;
use tickless_trace::read::Trace;
use tickless_trace::replay::{Inference, PolicyResult, ReplayPolicy, Summary, summarise};

/// The committed traces, in the order of tables.
pub const SAMPLES: [&str; 5] =
    ["idle", "nginx", "pipe-one-cpu", "pipe-two-cpus", "two-groups-aligned"];

pub fn sample_path(name: &str) -> PathBuf {
    PathBuf::from(format!("{}/../../traces/{name}.txt.gz", env!("CARGO_MANIFEST_DIR")))
}

pub fn sample_text(name: &str) -> String {
    let file = std::fs::File::open(sample_path(name)).unwrap();
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Replays a trace's text under all policies.
pub fn replay(text: &str) -> Summary {
    replay_with(text, Inference::On)
}

pub fn replay_with(text: &str, inference: Inference) -> Summary {
    let trace = Trace::parse("t", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    summarise(&trace, &ReplayPolicy::DEFAULT, inference)
}

/// The results in the order eager, lazy, restart-aware.
pub fn all<T>(summary: &Summary, of: impl Fn(&PolicyResult) -> T) -> [T; 3] {
    let names: Vec<&str> = summary.policies.iter().map(|result| result.policy).collect();
    assert_eq!(names, ["eager", "lazy", "restart-aware"]);
    std::array::from_fn(|place| of(&summary.policies[place]))
}

pub fn writes(summary: &Summary) -> [u64; 3] {
    all(summary, |result| result.device_writes)
}

pub fn inferred_writes(summary: &Summary) -> [u64; 3] {
    all(summary, |result| result.inferred_writes)
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

/// A trace written by hand. Times are in microseconds; the trace's clock is CLOCK_MONOTONIC.
pub struct Text {
    text: String,
}

impl Text {
    pub fn new() -> Text {
        Text { text: "# tracer: nop\n# kernel 6.18.0 HZ=250 clock=mono\n".to_string() }
    }

    /// Adds a line as ftrace prints it; `flags` is its flags column.
    pub fn line(mut self, at_us: u64, cpu: u16, flags: &str, event: &str) -> Text {
        let (seconds, micros) = (at_us / 1_000_000, at_us % 1_000_000);
        writeln!(self.text, " a-1 [{cpu:03}] {flags}  {seconds}.{micros:06}: {event}").unwrap();
        self
    }

    /// A task arms a timer that is not pending.
    pub fn start(self, at_us: u64, cpu: u16, timer: &str, expiry_us: u64) -> Text {
        self.line(at_us, cpu, "d..1.", &hrtimer_start(timer, expiry_us, " mode=ABS was_armed=0"))
    }

    /// A task arms a timer that is pending.
    pub fn restart(self, at_us: u64, cpu: u16, timer: &str, expiry_us: u64) -> Text {
        self.line(at_us, cpu, "d..1.", &hrtimer_start(timer, expiry_us, " mode=ABS was_armed=1"))
    }

    pub fn cancel(self, at_us: u64, cpu: u16, timer: &str) -> Text {
        self.line(at_us, cpu, "d..1.", &format!("hrtimer_cancel: hrtimer={timer}"))
    }

    pub fn write(self, at_us: u64, cpu: u16) -> Text {
        self.line(at_us, cpu, "d.h1.", "write_msr: 6e0, value 1")
    }

    /// An interrupt begins.
    pub fn enter(self, at_us: u64, cpu: u16) -> Text {
        self.line(at_us, cpu, "d.h1.", "local_timer_entry: vector=236")
    }

    pub fn leave(self, at_us: u64, cpu: u16) -> Text {
        self.line(at_us, cpu, "d.h1.", "local_timer_exit: vector=236")
    }

    /// A callback begins, at the handler's current time.
    pub fn expire(self, at_us: u64, cpu: u16, timer: &str) -> Text {
        let now = at_us * 1_000;
        self.expire_at(at_us, cpu, timer, now)
    }

    pub fn expire_at(self, at_us: u64, cpu: u16, timer: &str, now_ns: u64) -> Text {
        let event = format!("hrtimer_expire_entry: hrtimer={timer} function=f now={now_ns}");
        self.line(at_us, cpu, "d.h1.", &event)
    }

    pub fn returned(self, at_us: u64, cpu: u16, timer: &str) -> Text {
        self.line(at_us, cpu, "d.h1.", &format!("hrtimer_expire_exit: hrtimer={timer}"))
    }

    /// An interrupt that fires one timer.
    pub fn interrupt(self, at_us: u64, cpu: u16, timer: &str) -> Text {
        let text = self.enter(at_us, cpu).expire(at_us + 1, cpu, timer);
        text.returned(at_us + 2, cpu, timer).leave(at_us + 3, cpu)
    }

    /// The handler arms a timer that is not pending, for or in its callback.
    pub fn start_in_handler(self, at_us: u64, cpu: u16, timer: &str, expiry_us: u64) -> Text {
        self.line(at_us, cpu, "d.h2.", &hrtimer_start(timer, expiry_us, " mode=ABS was_armed=0"))
    }

    /// Returns the text without the lines that contain `word`.
    pub fn text_without(&self, word: &str) -> String {
        text_without(&self.text, word)
    }

    /// Adds an event without a timer, which ends the trace.
    pub fn end(self, at_us: u64) -> String {
        self.line(at_us, 0, ".....", "tick_stop: success=1 dependency=NONE").text
    }
}

pub fn hrtimer_start(timer: &str, expiry_us: u64, rest: &str) -> String {
    let ns = expiry_us * 1_000;
    format!("hrtimer_start: hrtimer={timer} function=f expires={ns} softexpires={ns}{rest}")
}

/// Returns the text without the lines that contain `word`.
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
