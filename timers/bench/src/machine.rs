//! The machine and the peers of a run.

use crate::peers::foreign;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The peers whose versions are in the lock file.
const PEERS: &[&str] =
    &["tokio", "tokio-util", "async-io", "nexus-timer", "governor", "leaky-bucket"];

/// Describes both, in the words of the page. Call it when the run begins, because of the load.
pub fn describe(foreign: Option<&Path>) -> String {
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let load = first_line("/proc/loadavg");
    let peers = PEERS.iter().filter_map(|name| locked(name)).chain(foreign::versions(foreign));
    let mut text = format!(
        "Measured on {}: {}, {} CPUs, Linux {}, clock source {}, load {} when the run began. \
         Peers: {}; `std` of Rust {}.\n",
        today(),
        cpu_name(),
        crate::affinity::remember(),
        first_line("/proc/sys/kernel/osrelease"),
        first_line(clock),
        load.split(' ').next().unwrap_or_default(),
        peers.collect::<Vec<_>>().join(", "),
        env!("CARGO_PKG_RUST_VERSION"),
    );
    for peer in foreign::missing(foreign) {
        let _ = writeln!(text, "\nNot built: {peer}.");
    }
    text
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
