//! The study `rearm`: removing the first timer leaves the event device (the CPU's timer hardware)
//! as it is, instead of programming it for the next timer.
//!
//! | file | contents |
//! |---|---|
//! | `ping_pong` | two threads that wake each other; a timer guards each wait |
//! | `devices` | the same measurement on each event device: a futex, a timerfd |

mod devices;
mod doctor;
mod live;
pub mod model;
mod ping_pong;
mod published;
mod sim;

use super::Study;

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

const NEEDS: [&str; 4] =
    ["workload.hz", "workload.pipe_ns", "workload.next_timer_ms", "workload.watchdog_ms"];
