//! W10: the cost of very many connections' idle timeouts for a server at full load.
//!
//! As many connections as the limit of open files allows are real, and requests come on random ones
//! of them. The timeouts of the others are simulated.

use super::Choice;
use crate::effort::Effort;
use crate::report::Table;
use crate::sample::{Figure, Outcomes, in_turn_unpinned, of_tokio};
use crate::web::guards::{Nothing, Scene, Tickless, Tokio};
use crate::web::trial::{Outcome, Trial, try_out};
use rustix::process::{Resource, getrlimit};
use std::time::Instant;

pub const TICKLESS: &str = "**tickless**: `CoarseSleep`";
const TOKIO: &str = of_tokio!("tokio: `Sleep`");

pub type Server = (&'static str, fn(&Trial) -> Outcome);

/// A column: its name, its unit, and its figure from an outcome and one without timeouts.
type Column = (&'static str, &'static str, fn(&Outcome, &Outcome) -> f64);

const COLUMNS: &[Column] = &[
    ("requests", "/s", |o, _| o.requests_per_s),
    ("CPU per request", "us", |o, _| o.cpu_us),
    ("share, by difference", "%", |o, without| 100.0 * (1.0 - without.cpu_us / o.cpu_us)),
    ("a push-out", "ns", |o, without| push_out_ns(o, without)),
    ("share, timed", "%", |o, without| push_out_ns(o, without) / o.cpu_us / 10.0),
];

/// Without timeouts only the reads of the clock are timed.
fn push_out_ns(outcome: &Outcome, without: &Outcome) -> f64 {
    outcome.push_out_ns - without.push_out_ns
}

pub const WITHOUT: &str = "no idle timeouts";

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let (run, repetitions, timeouts) = effort.servers;
    let connections = timeouts.min(open_files() / 2);
    let simulated = timeouts - connections;
    let trial = Trial { scene: Scene::IdleOnly, connections, simulated, run };
    let servers: [Server; 3] =
        [(WITHOUT, try_out::<Nothing>), (TICKLESS, try_out::<Tickless>), (TOKIO, try_out::<Tokio>)];
    let outcomes = run_servers(&servers, &trial, repetitions, choice);
    let title = format!(
        "{timeouts} idle timeouts, {connections} of real connections, one pushed out by each \
         request"
    );
    let about = "HTTP/1.1 with keep-alive on tokio's multi-thread runtime; 64 requests are in \
                 flight, on random connections. Push-outs are timed on the workers where they \
                 happen, with their cache misses there, less the cost of reading the clock. A \
                 share is of the server's CPU time: by difference from the run without \
                 timeouts in the same turn, and by the time that the push-outs took.";
    let mut table = Table::new("W10", &title, about);
    let without = outcomes.iter().find(|(name, _)| *name == WITHOUT);
    for &(column, unit, part) in COLUMNS {
        let column = table.column(column);
        for (name, of_this) in &outcomes {
            let without = without.map_or(of_this, |(_, without)| without);
            let pairs = of_this.iter().zip(without);
            let samples: Vec<f64> = pairs.map(|(one, without)| part(one, without)).collect();
            let figure = Figure::of(samples).filter(|figure| figure.median.is_finite());
            table.put(name, column, unit, figure);
        }
    }
    vec![table]
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

/// The number of files that this program may open, less some for itself.
fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(200)
}
