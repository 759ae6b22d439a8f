//! The study `cancel`: a cancel that waits for the timer's callback checks one base instead of all.

mod calls;
mod doctor;
mod live;
pub mod model;
mod sim;

use crate::studies::published::{Headline, PublishedReport};
use crate::studies::study::Study;

pub const STUDY: Study = Study {
    name: "cancel",
    about: "A cancel that waits: look at every base, or at one",
    published: REPORT,
    needs: &["workload.hz", "workload.timers_per_tick", "workload.timer_work_ns"],
    cells: model::cells_of,
    sim: sim::run,
    live: live::run,
    checks: &[doctor::CANCELS],
};

const REPORT: PublishedReport = PublishedReport {
    mechanism: "A cancel that waits looks at one base",
    source: "G. Gustafson, \"Performance of del_timer_sync\", linux-kernel, 10 May 2004",
    machine: "Itanium 2: 32 CPUs on 16 nodes; and a 4-way SMP",
    asked: "A cancel that waits for the callback checked every CPU for the running timer, which \
            made it one of the costliest functions of a database on 32 CPUs. If the timer records \
            the CPU on which it ran last, only that one must be checked. What does the field cost? \
            And can two callbacks of a timer overlap, so that it records the wrong CPU?",
    sides: ["scan all", "look at one"],
    headline: Headline {
        unit: "cycles per call, 32 CPUs, warm",
        published: Some([29_000.0, 95.0]),
        simulated: ["32p.before.warm", "32p.after.warm"],
        live_unit: "ns per call, 32 bases, warm",
        live: ["32.before.warm_ns", "32.after.warm_ns"],
    },
    plots: ["cost", "cost"],
    text: include_str!("cancel/report.txt"),
};
