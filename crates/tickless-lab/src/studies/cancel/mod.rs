//! A cancel that waits looks at one base, not at all.
//!
//! | file | contents |
//! |---|---|
//! | `calls` | what one call takes: warm and cold, on the caller's base |
//! | `across` | the same on another CPU's base |

mod across;
mod calls;
mod doctor;
mod live;
pub mod model;
mod published;
mod sim;

use super::Study;

/// The study.
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

/// The workload's numbers in a machine's file.
const NEEDS: [&str; 3] = ["workload.hz", "workload.timers_per_tick", "workload.timer_work_ns"];
