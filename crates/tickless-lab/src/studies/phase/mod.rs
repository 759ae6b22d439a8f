//! The study `phase`: the CPU quotas of two groups of threads are refilled at the same moment, or
//! half a period apart.
//!
//! | file | contents |
//! |---|---|
//! | `work` | two groups of threads that do a fixed amount of work, and their times |
//! | `cgroups` | cgroups of the kernel, selected by when they are refilled |
//! | `control` | the accuracy and the cost of the library's bandwidth controller |

mod cgroups;
mod control;
mod doctor;
mod live;
pub mod model;
mod published;
mod sim;
mod work;

use super::Study;

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

const NEEDS: [&str; 2] = ["workload.hz", "workload.work_s"];
