//! W12: a web server whose requests wait for timers: tokio's, and ours that its runtime drives.

use super::Choice;
use super::idle::{Server, run_servers};
use crate::effort::Effort;
use crate::report::{Column, Table};
use crate::sample::{in_turn_unpinned, of_tokio};
use crate::web::guards::{DEFAULT, InRuntime, Scene, Tokio};
use crate::web::trial::{Outcome, Trial, lateness_when_idle, switches_when_idle, try_out};

const COLUMNS: &[Column<Outcome>] = &[
    ("CPU per request", "us", |o| o.cpu_us),
    ("requests", "/s", |o| o.requests_per_s),
    ("sleeps per 100 requests", "", |o| o.wakeups * 100.0),
    ("p50", "us", |o| o.p50_us),
    ("p99", "us", |o| o.p99_us),
];

const IDLE_COLUMNS: &[Column<f64>] = &[("context switches", "/s", |switches| *switches)];

const LATE_COLUMNS: &[Column<[f64; 2]>] =
    &[("late, p50", "us", |late| late[0]), ("late, p99", "us", |late| late[1])];

const OURS: &str = "**tickless**";
const THEIRS: &str = of_tokio!("tokio");

const CONNECTIONS: usize = 64;

/// The first two are in every table, the others in that of sleeps.
const SERVERS: [Server; 4] = [
    (THEIRS, try_out::<Tokio>),
    (OURS, try_out::<InRuntime<DEFAULT>>),
    ("**tickless**, 1 ms of slack", try_out::<InRuntime<1000>>),
    ("**tickless**, 50 us of slack", try_out::<InRuntime<50>>),
];

/// A server without requests, and a function that measures it.
type Idle<T> = (&'static str, fn(&Trial) -> T);

const SCENES: [(Scene, usize, &str, &str); 3] = [
    (
        Scene::Sleeps,
        4,
        "each request sleeps for 2 ms",
        "The default slack of these sleeps is 125 us.",
    ),
    (
        Scene::Fires,
        2,
        "each request waits for a deadline of 50 ms",
        "The default slack of these deadlines is 1 ms.",
    ),
    (
        Scene::Guarded,
        2,
        "each request drops a deadline of 5 s",
        "Each connection has an idle timeout, too, which each request pushes out.",
    ),
];

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let (run, repetitions, _) = effort.servers;
    let trial = |scene| Trial { scene, connections: CONNECTIONS, simulated: 0, run };
    let of_scene = |(scene, servers, title, about)| {
        let mut table = Table::new("W12", title, about);
        let outcomes = run_servers(&SERVERS[..servers], &trial(scene), repetitions, choice);
        table.put_all(COLUMNS, &outcomes);
        table
    };
    let mut tables: Vec<Table> = SCENES.into_iter().map(of_scene).collect();
    let about = "64 connections without requests, and a task that ticks every 100 ms.";
    let mut table = Table::new("W12", "an idle server", about);
    let mut idle: Vec<Idle<f64>> = vec![
        (THEIRS, switches_when_idle::<Tokio>),
        (OURS, switches_when_idle::<InRuntime<DEFAULT>>),
    ];
    idle.retain(|(name, _)| choice.wants(name));
    let rows = in_turn_unpinned(idle, repetitions, |_, switches| switches(&trial(Scene::Guarded)));
    table.put_all(IDLE_COLUMNS, &rows);
    tables.push(table);
    let about = "One task, which sleeps for 250 us each time. The default slack is 16 us.";
    let mut table = Table::new("W12", "late sleeps of an idle server", about);
    let mut late: Vec<Idle<[f64; 2]>> = vec![
        (THEIRS, lateness_when_idle::<Tokio>),
        (OURS, lateness_when_idle::<InRuntime<DEFAULT>>),
    ];
    late.retain(|(name, _)| choice.wants(name));
    let rows = in_turn_unpinned(late, repetitions, |_, late| late(&trial(Scene::Sleeps)));
    table.put_all(LATE_COLUMNS, &rows);
    tables.push(table);
    tables
}
