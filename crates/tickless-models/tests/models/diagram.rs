//! What happened in a schedule that breaks something, drawn as one column for each context.

use super::checker::Checker;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tickless_core::platform::Lock;

const WIDTH: usize = 38;

/// A field of a kernel of the past: every access is a step of its own, and sees the last one.
pub struct Field<C: Checker>(C::Lock<u64>);

impl<C: Checker> Field<C> {
    pub fn new(value: u64) -> Self {
        Field(C::Lock::new(value))
    }

    pub fn read(&self) -> u64 {
        *self.0.lock()
    }

    pub fn write(&self, value: u64) {
        *self.0.lock() = value;
    }
}

/// What has happened in one run of a model so far. Written by its threads; read by none of them.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(usize, String)>>>);

impl Log {
    /// Something happens in a column.
    pub fn says(&self, column: usize, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((column, what.into()));
    }
}

/// What came of exploring a story that goes wrong in some schedules.
#[derive(Clone, Default)]
pub struct Findings(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    schedules: u64,
    broken: u64,
    /// Of the schedules that went wrong the one with the fewest switches.
    plainest: Option<Vec<(usize, String)>>,
}

impl Findings {
    /// A run is over.
    pub fn add(&self, log: &Log, broken: bool) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.schedules += 1;
        if !broken {
            return;
        }
        found.broken += 1;
        let log = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let weight = |log: &Vec<(usize, String)>| {
            (log.windows(2).filter(|pair| pair[0].0 != pair[1].0).count(), log.len())
        };
        if found.plainest.as_ref().is_none_or(|plainest| weight(&log) < weight(plainest)) {
            found.plainest = Some(log);
        }
    }

    /// In how many schedules it went wrong.
    pub fn broken(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).broken
    }

    /// How many schedules there were.
    pub fn schedules(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).schedules
    }

    /// The plainest schedule that went wrong.
    pub fn diagram(&self, columns: [&str; 2]) -> String {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = line(0, columns[0], columns[1]);
        text += &line(0, &"-".repeat(columns[0].len()), &"-".repeat(columns[1].len()));
        for (column, what) in found.plainest.iter().flatten() {
            text += &line(*column, what, "");
        }
        text
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "went wrong in {} of {} schedules", self.broken(), self.schedules())
    }
}

fn line(column: usize, left: &str, right: &str) -> String {
    let text = format!("{:indent$}{left:WIDTH$}{right}", "", indent = column * WIDTH);
    format!("{}\n", text.trim_end())
}
