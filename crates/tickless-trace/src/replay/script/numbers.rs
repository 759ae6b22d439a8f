//! Which timer each record is about.
//!
//! Timers are numbered once, so that everything else can look them up by place. An address
//! names one timer in each family: the kernel reuses addresses, and what was known of the last
//! timer there ends with the next one's set-up.

use crate::read::{Event, Record, TimerAddr, Trace};
use crate::replay::family::Family;
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Numbers {
    by_record: Vec<u32>,
    /// By timer.
    pub(super) families: Vec<Family>,
}

/// The number of no timer.
const NONE: u32 = u32::MAX;

impl Numbers {
    /// Numbers the timers of a trace in order of appearance. O(n).
    pub(super) fn assign(trace: &Trace) -> Numbers {
        let mut numbers: HashMap<(Family, TimerAddr), u32> = HashMap::new();
        let mut families = Vec::new();
        let mut number = |record: Record| {
            timer_of(&record).map_or(NONE, |timer| {
                *numbers.entry(timer).or_insert_with(|| {
                    families.push(timer.0);
                    families.len() as u32 - 1
                })
            })
        };
        let by_record = trace.records.iter().map(&mut number).collect();
        Numbers { by_record, families }
    }

    /// The timer that the record at `place` takes off, puts on, expires or sets up.
    pub(super) fn of(&self, place: usize) -> Option<u32> {
        Some(self.by_record[place]).filter(|number| *number != NONE)
    }
}

fn timer_of(record: &Record) -> Option<(Family, TimerAddr)> {
    match record.event {
        Event::TimerInit { timer }
        | Event::TimerStart { timer, .. }
        | Event::TimerCancel { timer }
        | Event::TimerExpireEntry { timer, .. } => Some((Family::Wheel, timer)),
        Event::HrtimerSetup { timer, .. }
        | Event::HrtimerStart { timer, .. }
        | Event::HrtimerCancel { timer }
        | Event::HrtimerExpireEntry { timer, .. } => Some((Family::Queue, timer)),
        _ => None,
    }
}
