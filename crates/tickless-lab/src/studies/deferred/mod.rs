//! The expiry thread is woken when something expired, not on every tick.
//!
//! | file | contents |
//! |---|---|
//! | `scene` | one measurement: ticking drivers, a few timeouts, a probe, perhaps load |
//! | `circumstances` | what is compared in which circumstances |
//! | `report` | its tables, plots and answers |

mod circumstances;
mod doctor;
mod live;
pub mod model;
mod published;
mod report;
mod scene;
mod sim;

use super::Study;

/// The study.
pub const STUDY: Study = Study {
    name: "deferred",
    about: "The expiry thread: wake it on every tick, or when something expired",
    published: published::REPORT,
    needs: &NEEDS,
    cells: |spec| model::cells(spec, model::SIDES),
    sim: sim::run,
    live: live::run,
    checks: &[doctor::SOFTIRQ, doctor::EMPTY_SOFTIRQS, doctor::IDLE_TICKS, doctor::TICK_WAKERS],
};

/// The workload's numbers in a machine's file.
const NEEDS: [&str; 3] = ["workload.timer_work_ns", "workload.expiry_ns", "workload.tick_skew_ns"];
