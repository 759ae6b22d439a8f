//! Compares the policies for programming the event device on each of the library's devices: on a
//! timerfd each write is a system call, on a futex it is not.

use super::ping_pong::{Guard, Plan, Taken, row_with_range};
use crate::LabError;
use crate::measure::{Spread, interleave};
use crate::progress::Progress;
use crate::studies::result::{self as columns, Column};
use crate::studies::{Band, Cell, Exhibit, Request, StudyResult};
use std::time::Duration;
use tickless::driver::Device;
use tickless::policy::Policy;

const DEVICES: [(&str, Device); 2] = [("futex", Device::Futex), ("timerfd", Device::Timerfd)];

const POLICIES: [(&str, Policy); 3] =
    [("lazy", Policy::Lazy), ("eager", Policy::Eager), ("restart_aware", Policy::RestartAware)];

const FIGURES: [Column<Taken>; 5] = [
    ("real_us_per_round_trip", "real us", "us", |t| t.us(t.usage.real_s)),
    ("system_us_per_round_trip", "system us", "us", |t| t.us(t.usage.system_s)),
    ("device_calls_per_round_trip", "device calls", "calls", |t| t.count(t.device_calls)),
    ("device_writes_per_round_trip", "writes", "writes", |t| t.count(t.device.writes)),
    ("wake_calls_per_round_trip", "wake calls", "calls", |t| t.count(t.wake_calls)),
];
const CALLS: usize = 2;

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
            let [real, system, calls, writes, wakes] = FIGURES;
            let shown = [real, system, writes, calls, wakes];
            rows.push(row_with_range(format!("{device}, {policy}"), &shown, taken));
            let cells = columns::cells(&format!("{device}.{policy}"), &FIGURES[..=CALLS], taken);
            let cells = cells.into_iter().enumerate();
            let band = |at| (at == CALLS).then(|| wanted_calls(device, policy));
            study.cells.extend(cells.map(|(at, cell)| cell.within(band(at))));
        }
        let [lazy, eager] =
            [0, 1].map(|way| taken[way].iter().map(|t| t.usage.real_s).collect::<Vec<f64>>());
        let gap = Spread::of_ratios(&eager, &lazy);
        let id = format!("{device}.gap.eager_over_lazy");
        study.cells.push(Cell::live(id, "x", gap).in_exhibit());
    }
    let header = ["", "real us", "low - high", "system us", "writes", "device calls", "wake calls"];
    study.exhibits.push(Exhibit::new("On each event device, per round trip", header, rows));
    Ok(())
}

/// On a timerfd every write is a system call; on a futex no write is one.
fn wanted_calls(device: &str, policy: &str) -> Band {
    match (device, policy) {
        ("timerfd", "lazy") => Band::at_most(0.001),
        ("timerfd", _) => Band::at_least(2.0),
        _ => Band::at_most(0.0),
    }
}
