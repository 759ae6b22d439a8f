//! The study `rearm`: removing the first timer leaves the event device (the CPU's timer hardware)
//! as it is, instead of programming it for the next timer.

mod doctor;
mod live;
pub mod model;
mod ping_pong;
mod sim;

use super::plot::{Bar, Plot, Shape, Side};
use super::{Study, StudyResult};
use crate::studies::published::{
    Entry, Headline, LIVE, PublishedReport, Results, Row, SIMULATED, Table, published, row, table,
};

pub const STUDY: Study = Study {
    name: "rearm",
    about: "Removing the first timer: program the event device, or not",
    published: REPORT,
    needs: &["workload.hz", "workload.pipe_ns", "workload.next_timer_ms", "workload.watchdog_ms"],
    cells: |spec| model::cells(spec, model::SIDES),
    sim: sim::run,
    live: live::run,
    checks: &[doctor::WRITES, doctor::REMOVALS],
};

const REPORT: PublishedReport = PublishedReport {
    mechanism: "Removing a timer does not program the event device",
    source: "E. Zhao, \"hrtimer: Fix a performance regression by disable reprogramming in \
             remove_hrtimer\", linux-kernel, 25 July 2013",
    machine: "Sun Fire X4170 M2: 2 sockets of 6 cores with 2 threads, X5675, 3.07 GHz",
    asked: "A change made every removal of the first timer program the device for the next one. A \
            million round trips through a pipe then took a third longer, because going idle \
            removes the tick's timer and leaving idle starts it again. Can a removal leave the \
            device as it is, or does that lose the only chance to program it?",
    sides: ["eager", "lazy"],
    headline: Headline {
        unit: "us per round trip",
        published: Some([7.202, 5.324]),
        simulated: ["eager.us_per_round_trip", "lazy.us_per_round_trip"],
        live_unit: "device writes per round trip",
        live: ["eager.device_writes_per_round_trip", "lazy.device_writes_per_round_trip"],
    },
    plots: ["writes", "guards"],
    tables,
};

const LAZY: [[&str; 9]; 3] = [
    ["5.328", "5.372", "5.307", "5.307", "5.330", "5.315", "5.318", "5.317", "5.324"],
    ["0.106", "0.098", "0.108", "0.120", "0.113", "0.121", "0.125", "0.103", "0.112"],
    ["2.287", "2.334", "2.269", "2.269", "2.298", "2.274", "2.263", "2.292", "2.286"],
];
const EAGER: [[&str; 9]; 3] = [
    ["7.132", "6.741", "6.996", "9.269", "6.742", "6.977", "6.802", "6.957", "7.202"],
    ["0.033", "0.031", "0.048", "0.436", "0.022", "0.005", "0.014", "0.014", "0.075"],
    ["3.119", "2.940", "3.185", "4.023", "3.053", "3.152", "3.054", "3.124", "3.206"],
];

fn plot_writes(study: &mut StudyResult) {
    let bar = |(name, side): (&str, Side)| Bar {
        name: name.replace('_', "-"),
        side,
        value: study.value(&format!("{name}.device_writes_per_round_trip")),
    };
    let bars =
        [("eager", Side::Before), ("restart_aware", Side::Beside), ("lazy", Side::After)].map(bar);
    let shape = Shape::Bars { unit: "writes per round trip", bars: bars.to_vec() };
    study.plots.push(Plot::new("writes", "Device writes per round trip", shape));
}

fn tables(results: &Results<'_>) -> Vec<Table> {
    let mut rows = Vec::new();
    for (name, id, runs) in [("lazy", "lazy", LAZY), ("eager", "eager", EAGER)] {
        let whats = [("real", "real"), ("user", "user"), ("sys", "system")];
        for ((what, live), runs) in whats.into_iter().zip(runs) {
            let simulated = match what {
                "real" => results.sim(&format!("{id}.us_per_round_trip")),
                _ => Entry::Nothing,
            };
            let live = results.live(&format!("{id}.{live}_us_per_round_trip"));
            let entries = runs.into_iter().map(published).chain([simulated, live]);
            rows.push(row(format!("{name} {what}"), entries));
        }
    }
    let runs = &["1", "2", "3", "4", "5", "6", "7", "8", "AVG"];
    let caption = "pipe-test-1m: seconds for a million round trips, which is us for each. Lazy is \
                   without commit 968320b, or with the patch; eager is with the commit";
    vec![
        table(caption, &[("published, runs", runs), ("ours", &[SIMULATED, LIVE])], rows),
        table(
            "What the time comes from",
            &[
                ("lazy", &["published", SIMULATED, LIVE]),
                ("eager", &["published", SIMULATED, LIVE]),
            ],
            causes(results),
        ),
    ]
}

fn causes(results: &Results<'_>) -> Vec<Row> {
    let both = |of: &dyn Fn(&str) -> [Entry; 3]| ["lazy", "eager"].map(of).into_iter().flatten();
    let writes = |way: &str| {
        let id = format!("{way}.device_writes_per_round_trip");
        [Entry::Nothing, results.sim(&id), results.live(&id)]
    };
    let share = |way: &str| {
        // In the published test, `time` counted the CPU time of only one of the two tasks. So the
        // published percentage is doubled here.
        let percent = if way == "lazy" { "90" } else { "91" };
        [published(percent), results.sim(&format!("{way}.task_percent")), Entry::Nothing]
    };
    let task = |way: &str| {
        let us = if way == "lazy" { "2.398" } else { "3.282" };
        [published(us), results.sim(&format!("{way}.task_us_per_round_trip")), Entry::Nothing]
    };
    let spurious = |way: &str| {
        let id = format!("{way}.spurious_wakeups_per_s");
        [Entry::Nothing, results.sim(&id), Entry::Nothing]
    };
    vec![
        row("device writes per round trip", both(&writes)),
        row("CPU time of a task, us", both(&task)),
        row("CPU time of both, % of real", both(&share)),
        row("wakeups for nothing, per s", both(&spurious)),
    ]
}
