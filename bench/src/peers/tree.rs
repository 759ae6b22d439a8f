//! The timers of many programs: a `std` B-tree, keyed by deadline.

use super::{Shared, Steps, Table};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// A deadline in ns, and a number that makes it unique.
pub type Key = (u64, u32);

#[derive(Default)]
pub struct Tree {
    map: BTreeMap<Key, u64>,
    deadlines: Vec<u64>,
}

impl Table for Tree {
    fn add(&mut self, after: Duration) {
        let deadline = after.as_nanos() as u64;
        self.map.insert((deadline, self.deadlines.len() as u32), 0);
        self.deadlines.push(deadline);
    }

    fn pair(&mut self, after: Duration) {
        let key = (after.as_nanos() as u64, u32::MAX);
        self.map.insert(key, 0);
        let value = self.map.remove(&key);
        debug_assert_eq!(value, Some(0));
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let deadline = &mut self.deadlines[timer];
        let value = self.map.remove(&(*deadline, timer as u32));
        debug_assert_eq!(value, Some(0));
        *deadline = after.as_nanos() as u64;
        self.map.insert((*deadline, timer as u32), 0);
    }

    fn pending(&mut self) -> usize {
        self.map.len()
    }
}

#[derive(Default)]
pub struct LockedTree(Mutex<(BTreeMap<Key, u64>, u32)>);

impl Shared for LockedTree {
    const NAME: &'static str = "std BTreeMap in a mutex";
    type Timer = Box<Key>;

    fn new() -> Self {
        LockedTree::default()
    }

    fn timer(&self) -> Box<Key> {
        let mut inside = self.0.lock().expect("nothing panics under this lock");
        inside.1 += 1;
        Box::new((0, inside.1))
    }

    fn arm(&self, timer: &mut Box<Key>, after: Duration) {
        timer.0 = after.as_nanos() as u64;
        self.0.lock().expect("nothing panics under this lock").0.insert(**timer, 0);
    }

    fn cancel(&self, timer: &mut Box<Key>) {
        let value = self.0.lock().expect("nothing panics under this lock").0.remove(timer);
        debug_assert_eq!(value, Some(0));
    }
}

impl Steps for Tree {
    fn advance(&mut self, ms: u64) -> u64 {
        let mut fired = 0;
        while let Some(first) = self.map.first_entry()
            && first.key().0 <= ms * 1_000_000
        {
            fired += first.remove() + 1;
        }
        fired
    }
}
