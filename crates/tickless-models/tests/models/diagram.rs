//! The events of a schedule in which a protocol fails, as text with a column for each thread.

use crate::checker::CheckedLock;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tickless_core::platform::Lock;

const WIDTH: usize = 38;

/// A field of a historical protocol: each access is a step of its own and sequentially consistent.
pub struct Field(CheckedLock<u64>);

impl Field {
    pub fn new(value: u64) -> Self {
        Field(CheckedLock::new(value))
    }

    pub fn read(&self) -> u64 {
        *self.0.lock()
    }

    pub fn write(&self, value: u64) {
        *self.0.lock() = value;
    }
}

/// The events of one run of a model. Its threads write and do not read it.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(usize, String)>>>);

impl Log {
    /// Adds an event to a column.
    pub fn add(&self, column: usize, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((column, what.into()));
    }
}

/// The results of exploring a protocol that fails in some schedules.
#[derive(Clone, Default)]
pub struct Findings(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    schedules: u64,
    broken: u64,
    /// The failing schedule with the fewest switches.
    simplest: Option<Vec<(usize, String)>>,
}

impl Findings {
    /// Adds the result of a run.
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
        if found.simplest.as_ref().is_none_or(|simplest| weight(&log) < weight(simplest)) {
            found.simplest = Some(log);
        }
    }

    /// Returns the number of failing schedules.
    pub fn broken(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).broken
    }

    /// Returns the number of schedules.
    pub fn schedules(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).schedules
    }

    /// Returns the simplest failing schedule as text.
    pub fn diagram(&self, columns: [&str; 2]) -> String {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = line(0, columns[0], columns[1]);
        text += &line(0, &"-".repeat(columns[0].len()), &"-".repeat(columns[1].len()));
        for (column, what) in found.simplest.iter().flatten() {
            text += &line(*column, what, "");
        }
        text
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed in {} of {} schedules", self.broken(), self.schedules())
    }
}

fn line(column: usize, left: &str, right: &str) -> String {
    let text = format!("{:indent$}{left:WIDTH$}{right}", "", indent = column * WIDTH);
    format!("{}\n", text.trim_end())
}
