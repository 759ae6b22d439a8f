//! A cancel that waits looks at one base, not at all.
//!
//! | file | contents |
//! |---|---|
//! | `model` | the workload on a simulated machine, its cells with their roles and bands |
//! | `sim` | the simulated run: cells, plots, answers, notes |
//! | `live` | the run on this machine |
//! | `calls` | what one call takes: warm and cold, on the caller's base |
//! | `across` | the same on another CPU's base |
//! | `published` | the published report, and its tables with our figures beside |
//! | `doctor` | the checks of `tickless doctor` for this mechanism |

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
