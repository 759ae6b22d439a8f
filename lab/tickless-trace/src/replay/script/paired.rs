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

use crate::list::List;
use crate::read::{Event, Record};
use tickless_core::time::{CpuId, Ns};

/// The longest time between the two records of a pair. The kernel holds its lock for longer only if
/// the hypervisor does not run the virtual CPU.
const APART_MAX: Ns = Ns::from_us(100);

#[derive(Default)]
pub(super) struct Paired {
    /// For each record, whether it is a cancel that is only part of a different operation.
    pub(super) found: List<bool>,
    cpus: Vec<Cpu>,
    /// For each timer, its last record, on any CPU, if that is a cancel, and its place.
    cancels: Vec<Option<(usize, Record)>>,
}

impl Paired {
    pub(super) fn new(cpus: u16) -> Paired {
        Paired { cpus: vec![Cpu::default(); cpus.into()], ..Paired::default() }
    }

    /// Forgets what came before a gap of a CPU.
    pub(super) fn forget(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()] = Cpu::default();
        self.cancels.fill(None);
    }

    /// Takes the next record, which is of this timer, or of none.
    pub(super) fn follow(&mut self, record: &Record, timer: Option<u32>) {
        let place = self.found.len();
        self.found.push(false);
        let Some(cpu) = self.cpus.get_mut(record.cpu.index()) else { return };
        let just_before = cpu.advance(record);
        let Some(timer) = timer.map(|timer| timer as usize) else { return };
        self.cancels.resize(self.cancels.len().max(timer + 1), None);
        let cancel = self.cancels[timer].take();
        let is_adjacent = |(place, cancel): &(usize, Record)| {
            just_before == Some(*place) && record.time.since(cancel.time) <= APART_MAX
        };
        let first = match record.event {
            Event::TimerStart { .. }
            | Event::HrtimerStart { was_armed: None, .. }
            | Event::HrtimerExpireEntry { .. } => cancel.filter(is_adjacent),
            Event::TimerExpireEntry { .. } => cancel.filter(|(_, it)| it.cpu == record.cpu),
            _ => None,
        };
        if let Some((first, _)) = first {
            self.found[first] = true;
        }
        if matches!(record.event, Event::TimerCancel { .. } | Event::HrtimerCancel { .. }) {
            cpu.cancels[cpu.level(record)] = Some(place);
            self.cancels[timer] = Some((place, *record));
        }
    }
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
