//! W9: a web server with tokio's timers, with ours, and with none.

use super::Choice;
use crate::effort::Effort;
use crate::report::{Column, Table};
use crate::sample::{Figure, Outcomes, in_turn_unpinned};
use crate::web::guards::{Nothing, Scene, Tickless, Tokio};
use crate::web::trial::{Outcome, Trial, try_out};
use std::time::Instant;

pub const CONNECTIONS: usize = 64;

/// The rows here and in W10.
pub const TICKLESS: &str = "**tickless**: `deadline`, `CoarseSleep`";
pub const TOKIO: &str = "tokio: `timeout`, `Sleep`";
const NOTHING: &str = "no timers";

const COLUMNS: &[Column<Outcome>] = &[
    ("requests", "/s", |o| o.requests_per_s),
    ("CPU per request", "us", |o| o.cpu_us),
    ("p50", "us", |o| o.p50_us),
    ("p99", "us", |o| o.p99_us),
    ("wake calls per request", "", |o| o.wake_calls),
];

const RATIOS: &[(&str, &str, &str)] = &[
    ("tickless / tokio", TICKLESS, TOKIO),
    ("tickless / no timers", TICKLESS, NOTHING),
    ("tokio / no timers", TOKIO, NOTHING),
];

pub type Server = (&'static str, fn(&Trial) -> Outcome);

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let (run, repetitions, _) = effort.servers;
    let (scene, connections) = (Scene::Guarded, CONNECTIONS);
    let trial = Trial { scene, connections, outstanding: connections, simulated: 0, run };
    let servers: [Server; 3] =
        [(TICKLESS, try_out::<Tickless>), (TOKIO, try_out::<Tokio>), (NOTHING, try_out::<Nothing>)];
    let outcomes = run_servers(&servers, &trial, repetitions, choice);
    vec![absolute(&outcomes), ratios(&outcomes)]
}

pub fn run_servers(
    servers: &[Server],
    trial: &Trial,
    repetitions: usize,
    choice: &Choice,
) -> Vec<Outcomes<Outcome>> {
    let wanted = servers.iter().filter(|(name, _)| choice.wants(name)).copied().collect();
    in_turn_unpinned(wanted, repetitions, |name, try_out| {
        let begun = Instant::now();
        let outcome = try_out(trial);
        let (s, connections) = (begun.elapsed().as_secs_f64(), trial.connections);
        eprintln!("{name}, {connections} connections: {s:.1} s");
        outcome
    })
}

fn absolute(outcomes: &[Outcomes<Outcome>]) -> Table {
    let about = "HTTP/1.1 with keep-alive on tokio's multi-thread runtime, 64 connections, each \
                 always with a request in flight. Every request has a deadline, and every \
                 connection an idle timeout that each request pushes out. CPU time is that of \
                 the server: workers, our drivers, and the kernel's work for both. Wake calls: \
                 writes into tokio's eventfd, calls that wake our drivers, and their sleeps.";
    let mut table = Table::new("W9", "a web server, every request guarded", about);
    table.put_all(COLUMNS, outcomes);
    table
}

fn ratios(outcomes: &[Outcomes<Outcome>]) -> Table {
    let about = "Each run divided by the other's of the same turn.";
    let mut table = Table::new("W9", "the same as ratios", about);
    // The last column is nearly zero, so its ratios mean nothing.
    for &(column, _, part) in &COLUMNS[..COLUMNS.len() - 1] {
        let column = table.column(column);
        let parts = |of: &str| {
            let (_, outcomes) = outcomes.iter().find(|(name, _)| *name == of)?;
            Some(outcomes.iter().map(part).collect::<Vec<f64>>())
        };
        for &(name, one, other) in RATIOS {
            let both = parts(one).zip(parts(other));
            let figure = both.and_then(|(one, other)| Figure::of_ratios(&one, &other));
            table.put(name, column, "x", figure);
        }
    }
    table
}
