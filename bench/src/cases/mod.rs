//! The cases, one a file, in the order in which they are shown.

mod arm_cancel;
mod clocks;
mod expiry;
mod http;
mod idle;
mod lateness;
mod limiter;
mod memory;
mod one_sleep;
mod push_out;
mod sleep;
mod syscalls;
mod threads;

use crate::effort::Effort;
use crate::peers::foreign::{self, Foreign, Kind};
use crate::report::Table;
use crate::sample::Contender;
use std::path::PathBuf;

/// Which part of the page a case stands in, and is run for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Section {
    /// What operations cost.
    Operations,
    /// Sleeps and deadlines in async programs, beside tokio's.
    Futures,
}

/// One case: its name on the command line, and how to run it.
pub struct Case {
    pub id: &'static str,
    pub section: Section,
    pub run: fn(&Effort, &Choice) -> Vec<Table>,
}

const fn operations(id: &'static str, run: fn(&Effort, &Choice) -> Vec<Table>) -> Case {
    Case { id, section: Section::Operations, run }
}

const fn futures(id: &'static str, run: fn(&Effort, &Choice) -> Vec<Table>) -> Case {
    Case { id, section: Section::Futures, run }
}

pub const CASES: &[Case] = &[
    operations("W1", arm_cancel::run),
    operations("W2", push_out::run),
    operations("W3", expiry::run),
    operations("W4", threads::run_own),
    operations("W4x", threads::run_crossed),
    operations("W5", lateness::run),
    operations("W6", memory::run),
    futures("W7", sleep::run),
    futures("W8", one_sleep::run),
    futures("W9", http::run),
    futures("W10", idle::run),
    operations("W11", limiter::run),
    operations("clocks", clocks::run),
    operations("syscalls", syscalls::run),
];

/// The case that must run before all others: memory that a program has given back may stay with
/// a library, and would then not be seen when it is used again.
pub const FIRST: &str = "W6";

/// Which peers are wanted.
#[derive(Debug, Default)]
pub struct Choice {
    /// Part of a name; all if there is none.
    pub peer: Option<String>,
    /// Where the programs of peers in other languages are.
    pub foreign: Option<PathBuf>,
}

impl Choice {
    pub fn wants(&self, name: &str) -> bool {
        let wanted = |peer: &String| name.to_lowercase().contains(&peer.to_lowercase());
        self.peer.as_ref().is_none_or(wanted)
    }

    /// The wanted peers in other languages that can do this, and their programs.
    fn foreign(&self, kind: Kind) -> impl Iterator<Item = (&'static Foreign, PathBuf)> {
        foreign::able(self.foreign.as_deref(), kind).filter(|(peer, _)| self.wants(peer.name))
    }
}

/// One contender whose sample is a method of something it owns.
fn contender<'a>(name: &'static str, sample: impl FnMut() -> f64 + 'a) -> Contender<'a> {
    Contender { name, sample: Box::new(sample) }
}

/// 1k, 100k, 1M.
fn short(count: usize) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}
