//! The cases, one a file, in the order in which they are shown.

mod arm_cancel;
mod clocks;
mod expiry;
mod lateness;
mod memory;
mod push_out;
mod sleep;
mod syscalls;
mod threads;

use crate::effort::Effort;
use crate::report::Table;
use crate::sample::Contender;

/// One case: its name on the command line, and how to run it.
pub struct Case {
    pub id: &'static str,
    pub run: fn(&Effort, &Choice) -> Vec<Table>,
}

pub const CASES: &[Case] = &[
    Case { id: "W1", run: arm_cancel::run },
    Case { id: "W2", run: push_out::run },
    Case { id: "W3", run: expiry::run },
    Case { id: "W4", run: threads::run_own },
    Case { id: "W4x", run: threads::run_crossed },
    Case { id: "W5", run: lateness::run },
    Case { id: "W6", run: memory::run },
    Case { id: "W7", run: sleep::run },
    Case { id: "clocks", run: clocks::run },
    Case { id: "syscalls", run: syscalls::run },
];

/// The case that must run before all others: memory that a program has given back may stay with
/// a library, and would then not be seen when it is used again.
pub const FIRST: &str = "W6";

/// Which peers are wanted.
#[derive(Debug, Default)]
pub struct Choice {
    /// Part of a name; all if there is none.
    pub peer: Option<String>,
}

impl Choice {
    pub fn wants(&self, name: &str) -> bool {
        let wanted = |peer: &String| name.to_lowercase().contains(&peer.to_lowercase());
        self.peer.as_ref().is_none_or(wanted)
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
