//! The study `clock`: one CPU reads a slow shared counter, and the other CPUs that wait for a read
//! take the value that it has read.

pub mod device;
mod doctor;
mod live;
pub mod model;
mod readers;
mod sim;

use super::Study;
use crate::studies::published::{
    Entry, Headline, PUBLISHED, PublishedReport, Results, SIMULATED, Table, published, row, table,
};

pub const STUDY: Study = Study {
    name: "clock",
    about: "A slow shared counter: everybody reads it, or one reads for all",
    published: REPORT,
    needs: &["workload.hz", "workload.reads_per_tick", "workload.jobs_per_cpu_minute"],
    cells: |spec| model::cells(spec, model::SIDES),
    sim: sim::run,
    live: live::run,
    checks: &[doctor::SOURCE, doctor::CONTENTION, doctor::WATCHDOG],
};

const REPORT: PublishedReport = PublishedReport {
    mechanism: "One CPU reads a slow shared counter for all",
    source: "W. Long, \"x86/hpet: Reduce HPET counter read contention\", linux-kernel, April 2016",
    machine: "Haswell-EX, 4 sockets, 72 CPUs; Ivy Bridge-EX, 16 sockets, 480 CPUs; 1000 Hz",
    asked: "Where the time-stamp counters are unreliable, all CPUs read one HPET, which serves one \
            read at a time: on 480 CPUs that takes a third of all time, up to lockups. If many \
            CPUs read at once, can one read for all? And from how many CPUs on does it pay?",
    sides: ["each reads", "one reads for all"],
    headline: Headline {
        unit: "% of 480 CPUs' time in the read",
        published: Some([34.0, 2.96]),
        simulated: ["480.hpet.read_percent", "480.combined.read_percent"],
        live_unit: "device reads per value, a thread on each CPU",
        live: [
            "emulated.*t.direct.device_reads_per_read",
            "emulated.*t.combined.device_reads_per_read",
        ],
    },
    plots: ["read_percent", "jobs"],
    tables,
};

fn tables(results: &Results<'_>) -> Vec<Table> {
    let both = |published_: [&str; 2], id: &str| {
        let [small, big] = published_.map(published);
        let [of_small, of_big] = [72, 480].map(|cpus| results.sim(&format!("{cpus}.{id}")));
        [small, of_small, big, of_big]
    };
    let rows = vec![
        row("TSC, jobs/min", both(["646,515", "3,145,329"], "tsc.jobs_per_min")),
        row("HPET without patch", both(["566,708", "1,108,537"], "hpet.jobs_per_min")),
        row("HPET with patch", both(["638,791", "3,019,934"], "combined.jobs_per_min")),
        row("read_hpet without, % of time", both(["4.99", "> 34"], "hpet.read_percent")),
        row("read_hpet with, %", both(["1.41", "2.96"], "combined.read_percent")),
        row("1 read in 1000 takes, ns", {
            let of = |cpus: u16| results.sim(&format!("{cpus}.hpet.read_p999"));
            [Entry::Nothing, of(72), Entry::Nothing, of(480)]
        }),
        row("the same combined", {
            let of = |cpus: u16| results.sim(&format!("{cpus}.combined.read_p999"));
            [Entry::Nothing, of(72), Entry::Nothing, of(480)]
        }),
    ];
    let mut tables = vec![table(
        "AIM7 compute, 1500 users",
        &[("72 CPUs", &[PUBLISHED, SIMULATED]), ("480 CPUs", &[PUBLISHED, SIMULATED])],
        rows,
    )];
    tables.extend(live(results));
    tables
}

/// The table of the emulated device's figures, if they were measured.
fn live(results: &Results<'_>) -> Option<Table> {
    results.live?;
    let all = format!("{} threads", results.cpus);
    let line = |label: &str, what: &str| {
        let of =
            |threads: &str, way: &str| results.live(&format!("emulated.{threads}t.{way}.{what}"));
        let entries =
            [of("1", "direct"), of("1", "combined"), of("*", "direct"), of("*", "combined")];
        row(label, entries)
    };
    let gain = row(
        "combined for direct",
        [Entry::Nothing, results.live("emulated.1t.cost_alone"), Entry::Nothing, {
            results.live("emulated.*t.gain")
        }],
    );
    Some(table(
        "Live: an emulated counter, one read at a time, 1 us each",
        &[("1 thread", &["direct", "combined"]), (&all, &["direct", "combined"])],
        vec![
            line("values per s", "reads_per_s"),
            line("device reads per value", "device_reads_per_read"),
            line("p99 of a read, ns", "p99_ns"),
            gain,
        ],
    ))
}
