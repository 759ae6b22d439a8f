//! What the figures were measured on, and with which peers.

use crate::peers::foreign;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A machine and what it runs.
#[derive(Debug, Serialize)]
pub struct Machine {
    date: String,
    cpu: String,
    cpus: usize,
    kernel: String,
    clock: String,
    /// The load average of the last minute, when the run began: how quiet the machine was.
    load: String,
    peers: Vec<String>,
    /// Peers that could not be built, and why.
    missing: Vec<String>,
}

/// The peers that stand in the lock file.
const PEERS: &[&str] = &[
    "tokio",
    "tokio-util",
    "async-io",
    "hierarchical_hash_wheel_timer",
    "nexus-timer",
    "bitwheel",
    "governor",
    "leaky-bucket",
];

impl Machine {
    pub fn here(foreign: Option<&Path>) -> Machine {
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let load = first_line("/proc/loadavg");
        let peers = PEERS.iter().filter_map(|name| locked(name));
        Machine {
            date: today(),
            cpu: cpu_name(),
            cpus: crate::affinity::remember(),
            kernel: first_line("/proc/sys/kernel/osrelease"),
            clock: first_line(clock),
            load: load.split(' ').next().unwrap_or_default().to_string(),
            peers: peers.chain(foreign::versions(foreign)).collect(),
            missing: foreign::missing(foreign),
        }
    }

    pub fn markdown(&self) -> String {
        let Machine { date, cpu, cpus, kernel, clock, load, peers, missing } = self;
        let mut text = format!(
            "Measured on {date}: {cpu}, {cpus} CPUs, Linux {kernel}, clock source {clock}, load \
             {load} when the run began. Peers: {}; `std` of Rust {}.\n",
            peers.join(", "),
            env!("CARGO_PKG_RUST_VERSION"),
        );
        for peer in missing {
            let _ = writeln!(text, "\nNot built: {peer}.");
        }
        text
    }
}

/// A package's name and version, from the lock file of this program.
fn locked(name: &str) -> Option<String> {
    let lock = include_str!("../Cargo.lock");
    let rest = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
    Some(format!("{name} {}", rest.split_once('"')?.0))
}

fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_string());
    match (field("cpu family"), field("model\t")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name,
    }
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").trim().to_string()
}

/// The date in UTC, as 2026-03-21.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut days, mut year) = (seconds / 86_400, 1970);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}
