//! The study `phase`: the CPU quotas of two groups of threads are refilled at the same moment, or
//! half a period apart.

mod cgroups;
mod control;
mod doctor;
mod live;
pub mod model;
mod sim;
mod work;

use super::Study;
use crate::studies::published::{
    Entry, Headline, LIVE, PUBLISHED, PublishedReport, Results, SIMULATED, Table, published, row,
    table,
};

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
    tables,
};

fn tables(results: &Results<'_>) -> Vec<Table> {
    let run = |label: &str, with: &str, id: &str, live: Entry| {
        row(
            label,
            [
                published("120"),
                results.sim("alone.seconds"),
                published("155"),
                results.sim("together.aligned.seconds"),
                published(with),
                results.sim(id),
                live,
            ],
        )
    };
    let theirs = table(
        "stress-ng --cpu=4 --cpu-ops=100000, 100 ms / 200 ms: seconds. The offsets are \
         those multiples of 10 ms that fit; live: another, shorter work, aligned (0 ms) \
         and spread (50 ms)",
        &[
            ("each alone", &[PUBLISHED, SIMULATED]),
            ("together, without", &[PUBLISHED, SIMULATED]),
            ("together, with the patch", &[PUBLISHED, SIMULATED, LIVE]),
        ],
        vec![
            run("30 ms apart", "131", "together.30ms.seconds", Entry::Nothing),
            run(
                "0 ms apart",
                "155",
                "together.aligned.seconds",
                results.live("aligned.completion"),
            ),
            run("50 ms apart", "121", "together.50ms.seconds", results.live("spread.completion")),
        ],
    );
    let ways = ["aligned", "spread", "random", "kernel_near", "kernel_far"];
    let line = |(label, id): (&str, &str)| {
        row(label, ways.map(|way| results.live(&format!("{way}.{id}"))))
    };
    let ours = [
        ("refills apart, ms", "apart"),
        ("overlap", "overlap"),
        ("p99 of a 5 ms burst, ms", "burst_p99"),
        ("switches per s", "switches"),
        ("timer wakeups per s", "wakeups"),
    ];
    let later = table(
        "Second source: later versions of the patch, two groups half a period apart; the \
         completion times set the machine's numbers, power and energy do not",
        &[("", &[PUBLISHED, SIMULATED])],
        vec![
            row("seconds", [published("33.05"), results.sim("later.apart.seconds")]),
            row(
                "for aligned ones",
                [published("0.676 to 0.694"), results.sim("later.apart_over_aligned")],
            ),
            row("power, W", [published("+15 %"), results.sim("later.apart.watts")]),
            row("energy, J", [published("-7 to -18 %"), results.sim("later.apart.joules")]),
        ],
    );
    let mut tables = vec![theirs, later, unpublished(results)];
    if results.live.is_some() {
        tables.push(table(
            "Live: two groups at work, ours and the kernel's own",
            &[
                ("library", &["aligned", "spread", "random"]),
                ("kernel cgroups", &["nearest", "farthest"]),
            ],
            ours.map(line).into_iter().collect(),
        ));
    }
    tables
}

fn unpublished(results: &Results<'_>) -> Table {
    let offsets = ["aligned", "10ms", "20ms", "30ms", "40ms", "50ms"];
    let line = |what: &str| offsets.map(|at| results.sim(&format!("together.{at}.{what}")));
    let gains = |percent: u16| results.sim(&format!("gain.{percent}_percent"));
    let gain = [10, 25, 50, 75, 100].map(gains);
    table(
        "Simulated: time and energy by the offset; and the gain of refilling apart by the \
         largest share of time for which a worker may run",
        &[("refills apart, ms", &["0", "10", "20", "30", "40", "50"])],
        vec![
            row("seconds", line("seconds")),
            row("joules", line("joules")),
            row("watts", line("watts")),
            row("busy at most, %", ["10", "25", "50", "75", "100", ""].map(Entry::Word)),
            row("apart is faster, x", gain.into_iter().chain([Entry::Nothing])),
        ],
    )
}
