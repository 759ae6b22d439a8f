//! The study `clock`: one CPU reads a slow shared counter, and the other CPUs that wait for a read
//! take the value that it has read.

pub mod device;
mod doctor;
mod live;
pub mod model;
mod readers;
mod sim;

use crate::studies::published::{Headline, PublishedReport};
use crate::studies::study::Study;

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
    text: include_str!("clock/report.txt"),
};
