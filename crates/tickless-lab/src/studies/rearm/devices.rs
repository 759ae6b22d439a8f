//! Compares the policies for programming the event device on each of the library's devices: on a
//! timerfd each write is a system call, on a futex it is not.

use super::ping_pong::{Guard, Plan, Taken, per_trip};
use crate::LabError;
use crate::measure::{Spread, interleave};
use crate::progress::Progress;
use crate::studies::{Band, Cell, Exhibit, Request, StudyResult};
use crate::text::figure;
use std::time::Duration;
use tickless::driver::Device;
use tickless::policy::Policy;

const DEVICES: [(&str, Device); 2] = [("futex", Device::Futex), ("timerfd", Device::Timerfd)];

const POLICIES: [(&str, Policy); 3] =
    [("lazy", Policy::Lazy), ("eager", Policy::Eager), ("restart_aware", Policy::RestartAware)];

const VARIANTS: usize = DEVICES.len() * POLICIES.len();

pub fn compare(
    study: &mut StudyResult,
    request: &Request,
    progress: &dyn Progress,
    cpus: [usize; 2],
    after: Duration,
) -> Result<(), LabError> {
    let turns = request.effort.pick(1, 5, 8);
    let trips = request.effort.pick(500, 10_000, 200_000);
    let taken = interleave("devices", VARIANTS, turns, progress, |way| {
        let (device, policy) = (DEVICES[way / POLICIES.len()].1, POLICIES[way % POLICIES.len()].1);
        Plan { guard: Some(Guard { policy, after, device }), trips, cpus }.play()
    })?;
    let mut rows = Vec::new();
    for ((device, _), taken) in DEVICES.iter().zip(taken.chunks(POLICIES.len())) {
        for ((policy, _), taken) in POLICIES.iter().zip(taken) {
            rows.push(row(study, device, policy, taken, trips));
        }
        let [lazy, eager] = [0, 1].map(|way| per_trip(&taken[way], trips, |t| t.usage.real_s));
        let gap = Spread::of_ratios(&eager, &lazy);
        let id = format!("{device}.gap.eager_over_lazy");
        study.cells.push(Cell::live(id, "x", gap).in_exhibit());
    }
    let header = ["", "real us", "low - high", "system us", "writes", "device calls", "wake calls"];
    study.exhibits.push(Exhibit::new("On each event device, per round trip", header, rows));
    Ok(())
}

fn row(
    study: &mut StudyResult,
    device: &str,
    policy: &str,
    taken: &[Taken],
    trips: u32,
) -> Vec<String> {
    let spread = |value: fn(&Taken) -> f64| Spread::of(per_trip(taken, trips, value));
    let real = spread(|taken| taken.usage.real_s * 1e6);
    let system = spread(|taken| taken.usage.system_s * 1e6);
    let writes = spread(|taken| taken.device.writes as f64);
    let calls = spread(|taken| taken.device_calls as f64);
    let wakes = spread(|taken| taken.wake_calls as f64);
    let line = vec![
        format!("{device}, {policy}"),
        figure(real.median),
        format!("{} - {}", figure(real.low), figure(real.high)),
        figure(system.median),
        figure(writes.median),
        figure(calls.median),
        figure(wakes.median),
    ];
    // On a timerfd every write is a system call; on a futex no write is one.
    let band = match (device, policy) {
        ("timerfd", "lazy") => Band::at_most(0.001),
        ("timerfd", _) => Band::at_least(2.0),
        _ => Band::at_most(0.0),
    };
    let id = |what: &str| format!("{device}.{policy}.{what}_per_round_trip");
    let cells = [
        Cell::live(id("real_us"), "us", real),
        Cell::live(id("system_us"), "us", system),
        Cell::live(id("device_calls"), "calls", calls).within(band),
    ];
    study.cells.extend(cells.map(Cell::in_exhibit));
    line
}
