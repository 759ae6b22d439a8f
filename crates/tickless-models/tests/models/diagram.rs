//! The events of a schedule in which a protocol fails, as text with a column for each thread.

use super::exploring::Depth;
use crate::checker::{self, CheckedLock};
use std::sync::{Arc, Mutex, PoisonError};
use tickless_core::platform::Lock;

const WIDTH: usize = 38;

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

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(usize, String)>>>);

impl Log {
    pub fn add(&self, column: usize, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((column, what.into()));
    }
}

#[derive(Default)]
pub struct Found {
    pub schedules: u64,
    pub broken: u64,
    simplest: Option<Vec<(usize, String)>>,
}

pub fn explore(
    name: &str,
    depth: Depth,
    model: impl Fn(&Log) -> bool + Send + Sync + 'static,
) -> Found {
    let found = Arc::new(Mutex::new(Found::default()));
    let all = Arc::clone(&found);
    checker::explore(depth, move || {
        let log = Log::default();
        let is_broken = model(&log);
        all.lock().unwrap_or_else(PoisonError::into_inner).add(&log, is_broken);
    });
    let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    let (broken, schedules) = (found.broken, found.schedules);
    println!("{name}: failed in {broken} of {schedules} schedules under {}", checker::NAME);
    found
}

impl Found {
    fn add(&mut self, log: &Log, is_broken: bool) {
        self.schedules += 1;
        if !is_broken {
            return;
        }
        self.broken += 1;
        let log = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let weight = |log: &Vec<(usize, String)>| {
            (log.windows(2).filter(|pair| pair[0].0 != pair[1].0).count(), log.len())
        };
        if self.simplest.as_ref().is_none_or(|simplest| weight(&log) < weight(simplest)) {
            self.simplest = Some(log);
        }
    }

    /// Checks that the protocol has failed, and that a page of the book shows the simplest failing
    /// schedule, if the checker explores all of them.
    pub fn is_shown(&self, columns: [&str; 2], page: &str) {
        assert!(self.broken > 0, "the checker does not find the failure");
        let mut diagram = line(0, columns[0], columns[1]);
        diagram += &line(0, &"-".repeat(columns[0].len()), &"-".repeat(columns[1].len()));
        for (column, what) in self.simplest.iter().flatten() {
            diagram += &line(*column, what, "");
        }
        println!("\n{diagram}");
        assert!(checker::IS_RANDOM || page.contains(&diagram), "the book shows another diagram");
    }
}

fn line(column: usize, left: &str, right: &str) -> String {
    let text = format!("{:indent$}{left:WIDTH$}{right}", "", indent = column * WIDTH);
    format!("{}\n", text.trim_end())
}
