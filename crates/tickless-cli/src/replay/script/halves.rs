//! Cancels that are halves of something else.
//!
//! The kernel prints that a timer was taken off wherever that happens: not only in a cancel,
//! but also
//!
//! | | then | which kernels |
//! |---|---|---|
//! | `timer_cancel` | `timer_start` of the same timer: it was pending and is armed anew | all |
//! | `timer_cancel` | `timer_expire_entry` | all |
//! | `hrtimer_cancel` | `hrtimer_start` | those that do not print `was_armed` |
//! | `hrtimer_cancel` | `hrtimer_expire_entry` | before 7.0, unless backported |
//!
//! Between the two the kernel holds a lock with interrupts off, so nothing else of that CPU can
//! stand there but what was written to its event device. The exception is the wheel's expiry:
//! the lock is free before the callback is announced, and an interrupt may come in between. No
//! timer of the wheel expires without its cancel, though.
//!
//! A caller that cancels a timer and starts it again at once, with nothing in between, looks
//! the same as one that starts a pending timer, unless the kernel prints `was_armed`. For the
//! event device that is at most one write less.

use super::Family;
use crate::trace::{Event, Record, TimerAddr, Trace};
use std::collections::HashMap;

/// By record: is it a cancel that is half of something else? O(n).
pub(super) fn find(trace: &Trace) -> Vec<bool> {
    let mut halves = vec![false; trace.records.len()];
    let mut cpus = vec![Cpu::default(); usize::from(trace.cpus)];
    // Cancels of wheel timers that nothing was heard of since.
    let mut wheel: HashMap<TimerAddr, (usize, u16)> = HashMap::new();
    for (place, record) in trace.records.iter().enumerate() {
        let Some(cpu) = cpus.get_mut(record.cpu.index()) else { continue };
        let last = cpu.arrive(record);
        let cancel = last.filter(|_| touched(record) == last.and_then(|last| last.0));
        let half = match record.event {
            Event::TimerStart { .. }
            | Event::HrtimerStart { was_armed: None | Some(true), .. }
            | Event::HrtimerExpireEntry { .. } => cancel.map(|(_, place)| place),
            Event::TimerExpireEntry { timer, .. } => {
                wheel.get(&timer).filter(|(_, cpu)| *cpu == record.cpu.0).map(|(place, _)| *place)
            }
            _ => None,
        };
        if let Some(half) = half {
            halves[half] = true;
        }
        match record.event {
            Event::TimerCancel { timer } => {
                cpu.last[cpu.level(record)] = Some((touched(record), place));
                wheel.insert(timer, (place, record.cpu.0));
            }
            Event::HrtimerCancel { .. } => {
                cpu.last[cpu.level(record)] = Some((touched(record), place));
            }
            Event::TimerInit { timer }
            | Event::TimerStart { timer, .. }
            | Event::TimerExpireEntry { timer, .. } => {
                wheel.remove(&timer);
            }
            _ => {}
        }
    }
    halves
}

/// Which timer a record takes off or puts on.
fn touched(record: &Record) -> Option<(Family, TimerAddr)> {
    match record.event {
        Event::TimerStart { timer, .. } | Event::TimerCancel { timer } => {
            Some((Family::Wheel, timer))
        }
        Event::HrtimerStart { timer, .. }
        | Event::HrtimerCancel { timer }
        | Event::HrtimerExpireEntry { timer, .. } => Some((Family::Queue, timer)),
        _ => None,
    }
}

type LastCancel = Option<(Option<(Family, TimerAddr)>, usize)>;

#[derive(Clone, Default)]
struct Cpu {
    in_interrupt: bool,
    /// The record just before, if it is a cancel: outside interrupts and inside.
    last: [LastCancel; 2],
}

impl Cpu {
    /// The cancel just before this record, which is over now. Interrupts do not come between
    /// what is outside of them.
    fn arrive(&mut self, record: &Record) -> LastCancel {
        match record.event {
            Event::LocalTimerEntry => {
                self.in_interrupt = true;
                self.last[1] = None;
                None
            }
            Event::LocalTimerExit => {
                self.in_interrupt = false;
                self.last[1] = None;
                None
            }
            // Part of taking a timer off.
            Event::WriteMsr { .. } => None,
            _ => self.last[self.level(record)].take(),
        }
    }

    fn level(&self, record: &Record) -> usize {
        usize::from(record.context.in_hard_irq().unwrap_or(self.in_interrupt))
    }
}
