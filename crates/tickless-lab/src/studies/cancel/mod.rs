//! The study `cancel`: a cancel that waits for the timer's callback checks one base instead of all.

mod calls;
mod doctor;
mod live;
pub mod model;
mod sim;

use super::Study;
use crate::studies::published::{
    Entry, Headline, LIVE, PUBLISHED, PublishedReport, Results, SIMULATED, Table, published, row,
    table,
};

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
    tables,
};

fn tables(results: &Results<'_>) -> Vec<Table> {
    let line = |label: &str, ids: [&str; 2], figures: [Option<&str>; 2]| {
        let entries = |cpus: u16, figure: Option<&str>| {
            [
                figure.map_or(Entry::Nothing, published),
                results.sim(&format!("{cpus}p.{}", ids[0])),
                results.live(&format!("{cpus}.{}", ids[1])),
            ]
        };
        let (many, few) = (entries(32, figures[0]), entries(4, figures[1]));
        row(label, many.into_iter().chain(few))
    };
    let both = |id| [id, id];
    let columns = &[PUBLISHED, SIMULATED, LIVE];
    let caption = "CPU cycles of a call of del_timer_sync; live: the same number of bases on this \
                   machine, in cycles of the time-stamp counter";
    let later = |what: &str, published_: [&str; 2]| {
        let of = |name: &str, figure: &str| {
            [published(figure), results.sim(&format!("later.{name}.{what}"))]
        };
        of("32w", published_[0]).into_iter().chain(of("4w", published_[1]))
    };
    let second = table(
        "Second source, not used for calibration: K. Chen, 2005, ns of a call",
        &[("32-way", &[PUBLISHED, SIMULATED]), ("4-way", &[PUBLISHED, SIMULATED])],
        vec![
            row("before, warm cache", later("before.warm", ["19,313", "648"])),
            row("after, warm cache", later("after.warm", ["81", "55"])),
            row("single-shot, warm", later("single_shot.warm", ["74", "41"])),
        ],
    );
    let first = table(
        caption,
        &[("32p", columns), ("4p", columns)],
        vec![
            line("before, warm cache", both("before.warm"), [Some("29,000"), Some("505")]),
            line("before, cold cache", both("before.cold"), [Some("37,800"), Some("1,220")]),
            line("after, warm cache", both("after.warm"), [Some("95"), Some("88")]),
            line("after, cold cache", both("after.cold"), [Some("1,800"), Some("140")]),
            line("single-shot, warm", both("single_shot.warm"), [None, Some("about 90")]),
        ],
    );
    vec![first, second]
}
