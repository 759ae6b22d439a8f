//! Refills of bandwidth groups that come together, or apart.
//!
//! | file | contents |
//! |---|---|
//! | `work` | two groups of threads with a fixed amount of work, and what became of it |
//! | `cgroups` | groups of the kernel's own controller, picked by their phases |
//! | `control` | how exact the library's controller is, and what it costs |

mod cgroups;
mod control;
mod doctor;
mod live;
pub mod model;
mod published;
mod sim;
mod work;

use super::Study;

/// The study.
pub const STUDY: Study = Study {
    name: "phase",
    about: "Two groups with a CPU quota: refill them together, or half a period apart",
    published: published::REPORT,
    needs: &NEEDS,
    cells: model::cells,
    sim: sim::run,
    live: live::run,
    checks: &[doctor::QUOTAS, doctor::ALIGNED],
};

/// The workload's numbers in a machine's file.
const NEEDS: [&str; 2] = ["workload.hz", "workload.work_s"];
