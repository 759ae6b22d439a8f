//! Finds the timer that each record is about.
//!
//! Each timer gets a number, which is its index in all other tables. An address and a family (wheel
//! or queue) identify a timer. The kernel uses the address of a freed timer again: when the new
//! timer is set up, it counts as idle, whatever the state of the freed one was.

use crate::list::List;
use crate::read::{Event, Family, NameId, Record, TimerAddr, Trace};
use rustc_hash::FxHashMap;

#[derive(Debug)]
pub(super) struct Timers {
    by_record: List<u32>,
    pub(super) families: Vec<Family>,
}

/// The number that stands for no timer.
const NONE: u32 = u32::MAX;

impl Timers {
    /// Numbers the timers of a trace, in the order of their first records. O(n) in the records.
    pub(super) fn number(trace: &Trace) -> Timers {
        let mut numbers: FxHashMap<(Family, TimerAddr), u32> = FxHashMap::default();
        let mut families = Vec::new();
        let mut number = |record: &Record| {
            let (Some(timer), false) = (record.event.timer(), is_exit(&record.event)) else {
                return NONE;
            };
            *numbers.entry(timer).or_insert_with(|| {
                families.push(timer.0);
                families.len() as u32 - 1
            })
        };
        let by_record = trace.records.iter().map(&mut number).collect();
        Timers { by_record, families }
    }

    /// Returns the timer that the record at `place` sets up, starts, removes or expires.
    pub(super) fn of(&self, place: usize) -> Option<u32> {
        self.by_record.pass(place);
        Some(self.by_record[place]).filter(|number| *number != NONE)
    }

    /// Returns for each timer whether its callback is one of `functions`. O(n) in the number of
    /// records.
    pub(super) fn calling(&self, trace: &Trace, functions: &[Option<NameId>]) -> Vec<bool> {
        let mut is_meant = vec![false; self.families.len()];
        for (record, &timer) in trace.records.iter().zip(self.by_record.iter()) {
            if let Event::HrtimerStart { function, .. }
            | Event::HrtimerExpireEntry { function, .. } = record.event
            {
                is_meant[timer as usize] |= functions.contains(&Some(function));
            }
        }
        is_meant
    }
}

/// Returns whether the event is the end of a callback. Such an event changes nothing about the
/// timer, and perhaps the callback has freed it.
fn is_exit(event: &Event) -> bool {
    matches!(event, Event::TimerExpireExit { .. } | Event::HrtimerExpireExit { .. })
}
