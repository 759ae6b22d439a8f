//! The study `phase`: the CPU quotas of two groups of threads are refilled at the same moment, or
//! half a period apart.

mod cgroups;
mod control;
mod doctor;
mod live;
pub mod model;
mod sim;
mod work;

use crate::studies::published::{Headline, PublishedReport};
use crate::studies::study::Study;

pub const STUDY: Study = Study {
    name: "phase",
    about: "Two groups with a CPU quota: refill them together, or half a period apart",
    published: REPORT,
    needs: &["workload.hz", "workload.work_s"],
    cells: model::cells,
    sim: sim::run,
    live: live::run,
    checks: &[doctor::THROTTLED, doctor::QUOTAS, doctor::ALIGNED],
};

const REPORT: PublishedReport = PublishedReport {
    mechanism: "Timers of one period are interleaved by their first expiry",
    source: "S. Hegde, \"hrtimer: interleave timers for improved single thread performance at low \
             utilization\", linux-kernel, 31 January 2023",
    machine: "Power10, one core with 8 threads; two groups, 25 % each, 4 workers each",
    asked: "Groups with a CPU quota and equal periods are refilled at the same moment, so they run \
            together, slow each other down, and then wait together. Refilled at different moments \
            they finish sooner. Does this need a new timer interface, or a different forward \
            function? What does it cost in power? And is there a loss on a busy machine?",
    sides: ["together", "apart"],
    headline: Headline {
        unit: "s to complete, two groups",
        published: Some([155.0, 121.0]),
        simulated: ["together.aligned.seconds", "together.50ms.seconds"],
        live_unit: "ms between the refills of two groups",
        live: ["aligned.apart", "spread.apart"],
    },
    plots: ["seconds", "strip"],
    text: include_str!("phase/report.txt"),
};
