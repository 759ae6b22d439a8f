//! The study `server`: what timers cost a server whose workers steal each other's requests, from 2
//! to 480 CPUs. The library's code around its timer core is simulated too: biased locks, wake-ups
//! of drivers, counts of users, memory, permits.

mod contenders;
mod limiter;
mod live;
mod model;
mod sim;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod words;

use crate::studies::published::{Headline, PublishedReport};
use crate::studies::study::Study;

pub const STUDY: Study = Study {
    name: "server",
    about: "A server that steals work: timers of each CPU, or of all",
    published: REPORT,
    needs: &["os.futex_ns", "os.membarrier_ns", "os.membarrier_cpu_ns"],
    cells: sim::cells_of,
    sim: sim::run,
    live: live::run,
    checks: &[],
};

const REPORT: PublishedReport = PublishedReport {
    mechanism: "Each CPU has its own base, lock and memory",
    source: "none: a question of this project",
    machine: "none; simulated as the machine of the combined HPET reads, with 2 to 480 CPUs",
    asked: "A server with work-stealing threads arms a timer on one CPU, pushes it out on a second \
            and drops it on a third. Does the time in timers for each request grow with the CPUs? \
            When does a lock with a bias towards one thread cost more than it saves?",
    sides: ["one lock", "ours"],
    headline: Headline {
        unit: "ns in timers per request, 30 CPUs, 10 % stolen",
        published: None,
        simulated: ["30.mutex.10pct.ns_per_request", "30.ours.10pct.ns_per_request"],
        live_unit: "ns in timers per request, 2 CPUs, 0 and 10 % stolen",
        live: ["2.ours.0pct.ns_per_request", "2.ours.10pct.ns_per_request"],
    },
    plots: ["others", "none"],
    text: include_str!("server/report.txt"),
};
