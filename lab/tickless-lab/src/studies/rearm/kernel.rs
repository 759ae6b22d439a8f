//! The row of this machine's own kernel, Linux 7.1 or later: the guards are timerfds.
//!
//! The kernel's device serves its tick, too, which is nearly always before a guard: arming and
//! removing a guard then writes nothing. What is written is counted by the event
//! `timer:hrtimer_rearm`, which Linux has since 7.1, on all CPUs and for all timers. It is recorded
//! in a run of its own, whose times are not shown, because recording takes time.

use super::LINUX;
use super::ping_pong::{By, Guard, Plan};
use crate::studies::cell::Cell;
use std::error::Error;
use std::fs;
use std::time::Duration;
use tickless_trace::record::{Options, Recording, Tracefs};

/// More round trips than these could fill the kernel's buffers.
const TRIPS_MAX: u32 = 20_000;

/// Counts the device writes for each round trip with guards of the kernel. Returns a description,
/// too; or why there is no such row.
pub(super) fn writes(plan: Plan, after: Duration) -> Result<(Cell, String), Box<dyn Error>> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let row = row(release.trim())?;
    let guard = Some(Guard { by: By::Kernel, after });
    let plan = Plan { guard, trips: plan.trips.min(TRIPS_MAX), ..plan };
    let recording = Recording::prepare(Tracefs::find()?, &Options::default(), None)?;
    recording.start()?;
    let taken = plan.play()?;
    recording.stop()?;
    let trace = recording.trace("what was recorded", "tickless study rearm")?;
    let dropped = recording.statistics().dropped;
    if dropped > 0 {
        return Err(format!("the kernel dropped {dropped} of its events").into());
    }
    let (writes, trips) = (trace.device_writes(), taken.warmed + taken.trips);
    let id = format!("{row}.device_writes_per_round_trip");
    let how = format!(
        "{row}: this machine's kernel, Linux {}, with timerfds as guards: {writes} writes \
         recorded (timer:hrtimer_rearm, all CPUs and timers) in {trips} round trips of a run of \
         their own. Its tick is nearly always the first timer, so guards seldom write",
        release.trim()
    );
    Ok((Cell::live(id, "writes", writes as f64 / f64::from(trips)), how))
}

/// Returns the name of a kernel's row; for kernels before 7.1, why there is none.
fn row(release: &str) -> Result<String, String> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (7, 1) => {
            Ok(format!("{LINUX}{major}_{minor}"))
        }
        _ => Err(format!("this kernel is {release}, and counts no device writes by itself")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the row is named by the kernel's version, and absent before 7.1 with the reason.
    #[test]
    fn a_row_is_named_by_the_kernels_version() {
        assert_eq!(row("7.2.13+deb14-cloud-amd64").as_deref(), Ok("linux_7_2"));
        assert_eq!(row("7.1-rc1").as_deref(), Ok("linux_7_1"));
        assert_eq!(row("10.0").as_deref(), Ok("linux_10_0"));
        for old in ["7.0.9", "6.18.44", "", "next"] {
            let why = row(old).unwrap_err();
            assert!(why.starts_with(&format!("this kernel is {old}, ")), "{why}");
        }
    }
}
