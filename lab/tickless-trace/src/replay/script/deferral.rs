//! Finds when the device is programmed that a timer interrupt has left alone.
//!
//! Linux since 7.1 records this as `hrtimer_rearm` with `deferred=1`. In other traces it is found
//! as follows. The kernel programs the device at the end of the interrupt, or in the scheduler,
//! once that has started the timer of the next task's time slice. So it is right after such a
//! start, if that is what the CPU has recorded next; otherwise, at the end of the interrupt.

use super::writer::Writer;
use super::{ItemKind, Op};
use crate::read::{Event, Record};
use tickless_core::time::{CpuId, Ns};

/// The scheduler runs this soon after an interrupt that makes a task wait.
const SCHEDULES_MAX: Ns = Ns::from_us(100);

pub(super) fn is_deferred(event: &Event) -> bool {
    matches!(event, Event::HrtimerRearm { is_deferred: Some(true), .. })
}

impl Writer {
    /// Adds the device's programming if this record is it, or shows that it has happened.
    pub(super) fn follow_deferral(&mut self, record: &Record, at: Ns) {
        let is_it = is_deferred(&record.event);
        if is_it {
            self.leave(record.cpu);
        }
        let is_after = !is_it && !self.has_deferred && !self.is_covered(record, at);
        let cpu = &mut self.cpus[record.cpu.index()];
        if let Some(covered) = cpu.deferral.as_mut().filter(|_| !is_after) {
            *covered = (at, self.place);
        }
        if is_it || is_after {
            self.settle(record.cpu);
        }
    }

    /// Returns whether the device is programmed only after the operation of this record.
    fn is_covered(&self, record: &Record, at: Ns) -> bool {
        let is_slice = match record.event {
            Event::HrtimerStart { function, .. } => self.slice_function == Some(function),
            Event::HrtimerCancel { .. } => {
                let timer = self.timers.of(self.place as usize);
                timer.is_some_and(|timer| self.script.slices[timer as usize])
            }
            _ => false,
        };
        let since = self.cpus[record.cpu.index()].last_interrupt;
        is_slice && at.since(since) <= SCHEDULES_MAX
    }

    pub(super) fn settle(&mut self, cpu: CpuId) {
        if let Some(moment) = self.cpus[cpu.index()].deferral.take() {
            self.script.push(moment, cpu, ItemKind::Operation, &[Op::Settle]);
        }
    }
}
