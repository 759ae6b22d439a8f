//! Finds recorded cancels that are only parts of other operations.
//!
//! The kernel records that a timer was removed wherever that happens: not only in a cancel, but
//! also in these pairs of records of one timer:
//!
//! | first | second | which kernels |
//! |---|---|---|
//! | `timer_cancel` | `timer_start`: a restart of a pending timer | all |
//! | `timer_cancel` | `timer_expire_entry` | all |
//! | `hrtimer_cancel` | `hrtimer_start` | those that do not print `was_armed` |
//! | `hrtimer_cancel` | `hrtimer_expire_entry` | before 7.0, unless backported |
//!
//! Between the two records of a pair, the kernel holds a lock with interrupts off, so the only
//! other records of that CPU are writes to its event device. The expiry of a wheel timer is an
//! exception: the kernel releases the lock before it records the callback, and an interrupt can
//! come in between. However, no wheel timer expires without its `timer_cancel`.
//!
//! The two records are microseconds apart. A real cancel with a start right after it looks like a
//! restart, unless the kernel prints `was_armed`. If such a cancel is wrongly taken for a part of a
//! restart, the replay differs by at most one write to the event device.

use super::timers::Timers;
use crate::list::List;
use crate::read::{Event, Record, Trace};
use tickless_core::time::Ns;

/// The longest time between the two records of a pair. The kernel holds its lock for longer only if
/// the hypervisor does not run the virtual CPU.
const APART_MAX: Ns = Ns::from_us(100);

/// Returns, for each record, whether it is a cancel that is only part of a different operation.
pub(super) fn find(trace: &Trace, timers: &Timers) -> List<bool> {
    let mut paired = List::default();
    let mut cpus = vec![Cpu::default(); usize::from(trace.cpus)];
    // For each timer, the place of its last record, on any CPU, if that is a cancel.
    let mut cancels: Vec<Option<usize>> = vec![None; timers.families.len()];
    let mut gaps = trace.gaps_in_order();
    for (place, record) in trace.records.iter().enumerate() {
        paired.push(false);
        for gap in gaps(place) {
            cpus[gap.cpu.index()] = Cpu::default();
            cancels.fill(None);
        }
        let Some(cpu) = cpus.get_mut(record.cpu.index()) else { continue };
        let just_before = cpu.advance(record);
        let Some(timer) = timers.of(place) else { continue };
        let cancel = cancels[timer as usize].take();
        let adjacent = cancel.filter(|cancel| {
            let apart = || record.time.since(trace.records[*cancel].time);
            just_before == Some(*cancel) && apart() <= APART_MAX
        });
        let first = match record.event {
            Event::TimerStart { .. }
            | Event::HrtimerStart { was_armed: None, .. }
            | Event::HrtimerExpireEntry { .. } => adjacent,
            Event::TimerExpireEntry { .. } => {
                cancel.filter(|cancel| trace.records[*cancel].cpu == record.cpu)
            }
            _ => None,
        };
        if let Some(first) = first {
            paired[first] = true;
        }
        if matches!(record.event, Event::TimerCancel { .. } | Event::HrtimerCancel { .. }) {
            cpu.cancels[cpu.level(record)] = Some(place);
            cancels[timer as usize] = Some(place);
        }
    }
    paired
}

#[derive(Clone, Default)]
struct Cpu {
    in_interrupt: bool,
    /// The place of the CPU's last record outside interrupts, and of its last one inside an
    /// interrupt; `None` if that record is not a cancel.
    cancels: [Option<usize>; 2],
}

impl Cpu {
    /// Advances to a record of this CPU, and returns the cancel just before it, if there is one.
    /// Records outside interrupts stay adjacent if an interrupt comes in between.
    fn advance(&mut self, record: &Record) -> Option<usize> {
        match record.event {
            Event::LocalTimerEntry | Event::LocalTimerExit => {
                self.in_interrupt = matches!(record.event, Event::LocalTimerEntry);
                self.cancels[1] = None;
                None
            }
            // A device write does not separate a pair: removing a timer can cause such a write.
            Event::WriteMsr { .. } | Event::HrtimerRearm { .. } => None,
            _ => self.cancels[self.level(record)].take(),
        }
    }

    fn level(&self, record: &Record) -> usize {
        usize::from(record.context.in_hard_irq().unwrap_or(self.in_interrupt))
    }
}
