//! The machine and the peers of a run.

use crate::peers::foreign;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

#[derive(Debug)]
pub struct Machine {
    date: String,
    cpu: String,
    cpus: usize,
    kernel: String,
    clock: String,
    load: String,
    peers: Vec<String>,
    missing: Vec<String>,
}

/// The peers whose versions are in the lock file.
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
    let date = Command::new("date").args(["-u", "+%F"]).output();
    date.map_or_else(
        |_| "unknown".into(),
        |date| String::from_utf8_lossy(&date.stdout).trim().into(),
    )
}
