//! W12: a web server whose requests wait for timers: tokio's, and ours that its runtime drives.

use super::Choice;
use super::http::{Server, run_servers};
use crate::effort::Effort;
use crate::report::{Column, Table};
use crate::sample::Outcomes;
use crate::web::guards::Guards;
use crate::web::in_runtime::{DEFAULT, Drops, Fires, Sleeps, Tickless, Time, Tokio};
use crate::web::trial::{Outcome, Trial, switches_when_idle, try_out};

/// The number of connections, and of requests in flight.
const CONNECTIONS: usize = 64;

const COLUMNS: &[Column<Outcome>] = &[
    ("CPU per request", "us", |o| o.cpu_us),
    ("requests", "/s", |o| o.requests_per_s),
    ("p50", "us", |o| o.p50_us),
    ("p99", "us", |o| o.p99_us),
];

const IDLE_COLUMNS: &[Column<f64>] = &[("context switches", "/s", |switches| *switches)];

fn server<G: Guards>() -> Server {
    (G::NAME, try_out::<G>)
}

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let (run, repetitions, _) = effort.servers;
    let trial = Trial { connections: CONNECTIONS, outstanding: CONNECTIONS, simulated: 0, run };
    let scenes: [(&str, &str, Vec<Server>); 3] = [
        (
            "each request sleeps for 2 ms",
            "The default slack of these sleeps is 125 us.",
            vec![
                server::<Sleeps<Tokio>>(),
                server::<Sleeps<Tickless<DEFAULT>>>(),
                server::<Sleeps<Tickless<1000>>>(),
                server::<Sleeps<Tickless<50>>>(),
            ],
        ),
        (
            "each request waits for a deadline of 50 ms",
            "The default slack of these deadlines is 1 ms.",
            vec![server::<Fires<Tokio>>(), server::<Fires<Tickless<DEFAULT>>>()],
        ),
        (
            "each request drops a deadline of 5 s",
            "Each connection has an idle timeout, too, which each request pushes out.",
            vec![server::<Drops<Tokio>>(), server::<Drops<Tickless<DEFAULT>>>()],
        ),
    ];
    let mut tables: Vec<Table> = scenes
        .into_iter()
        .map(|(title, about, servers)| {
            let mut table = Table::new("W12", title, about);
            table.put_all(COLUMNS, &run_servers(&servers, &trial, repetitions, choice));
            table
        })
        .collect();
    let about = "64 connections without requests, and a task that ticks every 100 ms.";
    let mut table = Table::new("W12", "an idle server", about);
    let idle: [(&'static str, fn(&Trial) -> f64); 2] = [
        (Tokio::NAME, switches_when_idle::<Drops<Tokio>>),
        (Tickless::<DEFAULT>::NAME, switches_when_idle::<Drops<Tickless<DEFAULT>>>),
    ];
    let mut rows: Vec<Outcomes<f64>> = idle.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for _ in 0..repetitions {
        for ((_, switches), (_, row)) in idle.iter().zip(&mut rows) {
            row.push(switches(&trial));
        }
    }
    table.put_all(IDLE_COLUMNS, &rows);
    tables.push(table);
    tables
}
