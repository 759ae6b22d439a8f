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
//! The two are microseconds apart. A caller that cancels a timer and starts it again at once,
//! with nothing in between, looks the same as one that starts a pending timer, unless the
//! kernel prints `was_armed`. For the event device that is at most one write less.

use super::numbers::Numbers;
use crate::read::{Event, Record, Trace};
use tickless_core::time::Ns;

/// Nothing holds that lock for longer, but a virtual CPU that is not running.
const APART_MAX: Ns = Ns::from_us(100);

/// By record: is it a cancel that is half of something else? O(n).
pub(super) fn find(trace: &Trace, numbers: &Numbers) -> Vec<bool> {
    let mut halves = vec![false; trace.records.len()];
    let mut cpus = vec![Cpu::default(); usize::from(trace.cpus)];
    // Where each timer was cancelled, if nothing was heard of it since, on whatever CPU.
    let mut cancels: Vec<Option<usize>> = vec![None; numbers.families.len()];
    for (place, record) in trace.records.iter().enumerate() {
        let Some(cpu) = cpus.get_mut(record.cpu.index()) else { continue };
        let just_before = cpu.arrive(&record);
        let Some(timer) = numbers.of(place) else { continue };
        let cancel = cancels[timer as usize].take();
        let adjacent = cancel.filter(|cancel| {
            let apart = record.time.since(trace.records.at(*cancel).time);
            just_before == Some(*cancel) && apart <= APART_MAX
        });
        let half = match record.event {
            Event::TimerStart { .. }
            | Event::HrtimerStart { was_armed: None, .. }
            | Event::HrtimerExpireEntry { .. } => adjacent,
            Event::TimerExpireEntry { .. } => {
                cancel.filter(|cancel| trace.records.at(*cancel).cpu == record.cpu)
            }
            _ => None,
        };
        if let Some(half) = half {
            halves[half] = true;
        }
        if matches!(record.event, Event::TimerCancel { .. } | Event::HrtimerCancel { .. }) {
            cpu.cancel[cpu.level(&record)] = Some(place);
            cancels[timer as usize] = Some(place);
        }
    }
    halves
}

#[derive(Clone, Default)]
struct Cpu {
    in_interrupt: bool,
    /// The record just before, if it is a cancel: outside interrupts and inside.
    cancel: [Option<usize>; 2],
}

impl Cpu {
    /// The cancel just before this record, which is over now. Interrupts do not come between
    /// what is outside of them.
    fn arrive(&mut self, record: &Record) -> Option<usize> {
        match record.event {
            Event::LocalTimerEntry => {
                self.in_interrupt = true;
                self.cancel[1] = None;
                None
            }
            Event::LocalTimerExit => {
                self.in_interrupt = false;
                self.cancel[1] = None;
                None
            }
            // Part of taking a timer off.
            Event::WriteMsr { .. } => None,
            _ => self.cancel[self.level(record)].take(),
        }
    }

    fn level(&self, record: &Record) -> usize {
        usize::from(record.context.in_hard_irq().unwrap_or(self.in_interrupt))
    }
}
