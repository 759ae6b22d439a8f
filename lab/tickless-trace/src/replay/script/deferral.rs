//! Finds when the device is programmed that a timer interrupt has left alone.
//!
//! Linux since 7.1 records this as `hrtimer_rearm` with `deferred=1`. In other traces it is at the
//! end of the interrupt. If the interrupt has asked for another task, and has not interrupted code
//! that cannot be preempted, it is in the scheduler instead: after the switch to that task and the
//! start of its time slice's timer. The flags of `local_timer_exit` tell which; without flags, the
//! next record of the CPU does.

use super::writer::Writer;
use super::{ItemKind, Op};
use crate::read::{Event, Record};
use tickless_core::time::{CpuId, Ns};

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
        let is_after = !is_it && !self.has_deferred && !self.is_of_scheduler(record);
        let cpu = &mut self.cpus[record.cpu.index()];
        if let Some(covered) = cpu.deferral.as_mut().filter(|_| !is_after) {
            *covered = (at, self.place);
        }
        if is_it || is_after {
            self.settle(record.cpu);
        }
    }

    /// Returns whether this record is of the scheduler, which the interrupt's end has called.
    fn is_of_scheduler(&self, record: &Record) -> bool {
        let is_of_scheduler = match record.event {
            // The scheduler also takes tasks from other CPUs before it switches.
            Event::SchedSwitch { .. } | Event::SchedMigrate { .. } => true,
            Event::HrtimerStart { function, .. } => self.timers.slice_function == Some(function),
            Event::HrtimerCancel { .. } => {
                let timer = self.timers.of(self.place as usize);
                timer.is_some_and(|timer| self.script.slices[timer as usize])
            }
            _ => false,
        };
        is_of_scheduler && self.cpus[record.cpu.index()].schedules
    }

    pub(super) fn settle(&mut self, cpu: CpuId) {
        if let Some(moment) = self.cpus[cpu.index()].deferral.take() {
            self.script.push(moment, cpu, ItemKind::Operation, &[Op::Settle]);
        }
    }
}
