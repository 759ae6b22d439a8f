//! Removing a timer does not program the event device.
//!
//! | file | contents |
//! |---|---|
//! | `ping_pong` | two threads that wake each other, each wait guarded by a timer |
//! | `devices` | the same on each event device: a futex, a timerfd |

mod devices;
mod doctor;
mod live;
pub mod model;
mod ping_pong;
mod published;
mod sim;

use super::Study;

/// The study.
pub const STUDY: Study = Study {
    name: "rearm",
    about: "Removing the first timer: program the event device, or not",
    published: published::REPORT,
    needs: &NEEDS,
    cells: |spec| model::cells(spec, model::SIDES),
    sim: sim::run,
    live: live::run,
    checks: &[doctor::WRITES, doctor::REMOVALS],
};

/// The workload's numbers in a machine's file.
const NEEDS: [&str; 4] =
    ["workload.hz", "workload.pipe_ns", "workload.next_timer_ms", "workload.watchdog_ms"];
