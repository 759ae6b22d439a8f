//! The cases, in the order of the page.

mod arm_cancel;
pub mod clusters;
mod executors;
mod expiry;
pub mod idle;
mod lateness;
mod limiter;
#[expect(unsafe_code, reason = "malloc_trim of the C library")]
mod memory;
pub mod newcomer;
mod one_sleep;
mod push_out;
mod sleep;
mod threads;
mod tokio_server;

use crate::effort::Effort;
use crate::peers::foreign::{self, Foreign, Kind};
use crate::report::Table;
use crate::sample::{ALTERNATIVE, Contender, IS_TWIN};
use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Section {
    Operations,
    Futures,
}

pub struct Case(pub &'static str, pub Section, pub fn(&Effort, &Choice) -> Vec<Table>);

pub const CASES: &[Case] = &[
    Case("W1", Section::Operations, arm_cancel::run),
    Case("W2", Section::Operations, push_out::run),
    Case("W3", Section::Operations, expiry::run),
    Case("W4", Section::Operations, threads::run_own),
    Case("W4x", Section::Operations, threads::run_crossed),
    Case("W5", Section::Operations, lateness::run),
    Case("W6", Section::Operations, memory::run),
    Case("W7", Section::Futures, sleep::run),
    Case("W8", Section::Futures, one_sleep::run),
    Case("W10", Section::Futures, idle::run),
    Case("W11", Section::Operations, limiter::run),
    Case("W12", Section::Futures, tokio_server::run),
    Case("W13", Section::Futures, executors::run),
    Case("W14", Section::Operations, clusters::run),
    Case("W15", Section::Futures, newcomer::run),
];

/// It runs first: a later measurement would not count freed memory that a library keeps.
pub const FIRST: &str = "W6";

#[derive(Debug, Default)]
pub struct Choice {
    /// A part of their names; `None` selects all.
    pub peer: Option<String>,
    /// The folder with the programs of peers in other languages.
    pub foreign: Option<PathBuf>,
    /// The build with tokio's alternative timers, and arguments for it.
    pub twin: Option<(PathBuf, Vec<String>)>,
}

impl Choice {
    pub fn wants(&self, name: &str) -> bool {
        let wanted = |peer: &String| name.to_lowercase().contains(&peer.to_lowercase());
        let in_this_build = !IS_TWIN || name.contains(ALTERNATIVE) || name == idle::WITHOUT;
        in_this_build && self.peer.as_ref().is_none_or(wanted)
    }

    fn foreign(&self, kind: Kind) -> impl Iterator<Item = (&'static Foreign, PathBuf)> {
        foreign::able(self.foreign.as_deref(), kind).filter(|(peer, _)| self.wants(peer.name))
    }
}

fn contender<'a>(name: &'static str, sample: impl FnMut() -> f64 + 'a) -> Contender<'a> {
    (name, Box::new(sample))
}

/// A contender in another language, whose count and sum show that it did the same work.
fn foreigner<'a>(
    name: &'static str,
    mut ask: impl FnMut() -> foreign::Answer + 'a,
    count: usize,
    mut sum: impl FnMut() -> u64 + 'a,
) -> Contender<'a> {
    contender(name, move || {
        let expected = (count, sum());
        let answer = ask();
        assert_eq!((answer.count, answer.sum), expected, "{name}: the same work");
        answer.ns
    })
}

fn short(count: usize) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}
