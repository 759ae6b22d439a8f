//! The study `clock`: one CPU reads a slow shared counter, and the other CPUs that wait for a read
//! take the value that it has read.
//!
//! | file | contents |
//! |---|---|
//! | `device` | the slow counters: an emulated one, and one that this machine has |
//! | `readers` | threads that read one counter as fast as they can, and check every value |

mod device;
mod doctor;
mod live;
pub mod model;
mod published;
mod readers;
mod sim;

use super::Study;

pub const STUDY: Study = Study {
    name: "clock",
    about: "A slow shared counter: everybody reads it, or one reads for all",
    published: published::REPORT,
    needs: &NEEDS,
    cells: |spec| model::cells(spec, model::SIDES),
    sim: sim::run,
    live: live::run,
    checks: &[doctor::SOURCE, doctor::CONTENTION, doctor::WATCHDOG],
};

const NEEDS: [&str; 3] = ["workload.hz", "workload.reads_per_tick", "workload.jobs_per_cpu_minute"];
