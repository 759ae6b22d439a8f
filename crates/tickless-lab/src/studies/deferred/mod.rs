//! The study `deferred`: a thread that fires expired timers is woken when a timer has expired,
//! instead of on every tick.
//!
//! | file | contents |
//! |---|---|
//! | `scene` | one measurement: ticking drivers, a few timeouts, a measuring thread, load |
//! | `circumstances` | the tick rates and loads in which variants are compared |
//! | `report` | the tables, plots and answers of the live run |

mod circumstances;
mod doctor;
mod live;
pub mod model;
mod published;
mod report;
mod scene;
mod sim;

use super::Study;

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

const NEEDS: [&str; 3] = ["workload.timer_work_ns", "workload.expiry_ns", "workload.tick_skew_ns"];
