//! Finds the timer that each record is about.
//!
//! Each timer gets a number, which is its index in all other tables. An address and a family (wheel
//! or queue) identify a timer. The kernel uses the address of a freed timer again: when the new
//! timer is set up, it counts as idle, whatever the state of the freed one was.

use crate::list::List;
use crate::read::{Event, Family, NameId, Names, Record, TimerAddr};
use crate::replay::policy::ReplayPolicy;
use rustc_hash::FxHashMap;

#[derive(Debug, Default)]
pub(super) struct Timers {
    by_record: List<u32>,
    numbers: FxHashMap<(Family, TimerAddr), u32>,
    pub(super) families: Vec<Family>,
    /// For each timer, whether it is a CPU's tick, and whether it ends the scheduler's slices.
    pub(super) ticks: Vec<bool>,
    pub(super) slices: Vec<bool>,
    tick_functions: [Option<NameId>; 2],
    pub(super) slice_function: Option<NameId>,
}

/// The number that stands for no timer.
const NONE: u32 = u32::MAX;

impl Timers {
    pub(super) fn new(names: &Names) -> Timers {
        let slice_function = names.find(ReplayPolicy::SLICE_FUNCTION);
        Timers { tick_functions: names.tick_functions(), slice_function, ..Timers::default() }
    }

    /// Takes the next record. Numbers its timer, in the order of their first records.
    pub(super) fn number(&mut self, record: &Record) -> Option<u32> {
        let number = record.event.timer().filter(|_| !is_exit(&record.event)).map(|timer| {
            *self.numbers.entry(timer).or_insert_with(|| {
                self.families.push(timer.0);
                self.ticks.push(false);
                self.slices.push(false);
                self.families.len() as u32 - 1
            })
        });
        self.by_record.push(number.unwrap_or(NONE));
        if let (
            Some(timer),
            Event::HrtimerStart { function, .. } | Event::HrtimerExpireEntry { function, .. },
        ) = (number, record.event)
        {
            self.ticks[timer as usize] |= self.tick_functions.contains(&Some(function));
            self.slices[timer as usize] |= self.slice_function == Some(function);
        }
        number
    }

    /// Returns the timer that the record at `place` sets up, starts, removes or expires.
    pub(super) fn of(&self, place: usize) -> Option<u32> {
        self.by_record.pass(place);
        Some(self.by_record[place]).filter(|number| *number != NONE)
    }
}

/// Returns whether the event is the end of a callback. Such an event changes nothing about the
/// timer, and perhaps the callback has freed it.
fn is_exit(event: &Event) -> bool {
    matches!(event, Event::TimerExpireExit { .. } | Event::HrtimerExpireExit { .. })
}
