//! The study `cancel`: a cancel that waits for the timer's callback checks one timer base instead
//! of all of them.
//!
//! | file | contents |
//! |---|---|
//! | `calls` | the time of a cancel with warm and cold caches, on the caller's own base |
//! | `across` | the time of a cancel on another CPU's base |

mod across;
mod calls;
mod doctor;
mod live;
pub mod model;
mod published;
mod sim;

use super::Study;

pub const STUDY: Study = Study {
    name: "cancel",
    about: "A cancel that waits: look at every base, or at one",
    published: published::REPORT,
    needs: &NEEDS,
    cells: model::cells_of,
    sim: sim::run,
    live: live::run,
    checks: &[doctor::CANCELS],
};

const NEEDS: [&str; 3] = ["workload.hz", "workload.timers_per_tick", "workload.timer_work_ns"];
