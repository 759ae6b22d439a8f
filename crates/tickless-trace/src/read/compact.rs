//! What an event says, as a few numbers: as many as its kind has, and no wider than need be.
//!
//! Timers' addresses and times are 64 bits each. All else of an event fits one number more, which
//! is small for the kinds that have no address: these are the most frequent ones.

use super::attributes::{Bucket, ClockId, HrtimerMode, TimerFlags};
use super::event::{Event, EventKind, Jiffy, TimerAddr};
use super::names::NameId;
use tickless_core::time::{CpuId, Ns};

/// The numbers of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fields {
    longs: [u64; LONGS_MAX],
    short: u64,
    /// How many of `longs` are used.
    count: usize,
}

const LONGS_MAX: usize = 3;

/// How many numbers of 64 bits the events of a kind have, and how many words of 32 bits the short
/// number takes.
const fn shape(kind: EventKind) -> (usize, usize) {
    match kind {
        EventKind::TimerInit
        | EventKind::TimerCancel
        | EventKind::TimerExpireExit
        | EventKind::HrtimerCancel
        | EventKind::HrtimerExpireExit => (1, 0),
        EventKind::HrtimerSetup | EventKind::WriteMsr => (1, 1),
        EventKind::HrtimerExpireEntry => (2, 1),
        EventKind::TimerExpireEntry | EventKind::HrtimerStart => (3, 1),
        EventKind::TimerStart => (3, 2),
        _ => (0, 2),
    }
}

impl Fields {
    /// The numbers of `event`, which happened in thread `pid`.
    pub(super) fn of(event: &Event, pid: u32) -> Fields {
        match *event {
            Event::TimerInit { timer }
            | Event::TimerCancel { timer }
            | Event::TimerExpireExit { timer }
            | Event::HrtimerCancel { timer }
            | Event::HrtimerExpireExit { timer } => Fields::new([timer.0], 0),
            Event::TimerStart { timer, expires, now, function, base, bucket, flags } => {
                let low = pair(base.0.into(), function.0);
                let high = pair(flags.0.into(), bucket.0);
                Fields::new([timer.0, expires.0, now.0], low | high << 32)
            }
            Event::TimerExpireEntry { timer, now, base_clock, function } => {
                Fields::new([timer.0, now.0, base_clock.0], function.0.into())
            }
            Event::HrtimerSetup { timer, clock, mode } => {
                Fields::new([timer.0], pair(mode.0.into(), clock as u16))
            }
            Event::HrtimerStart { timer, expires, soft_expires, function, mode, was_armed } => {
                let was_armed = was_armed.map_or(0, |was_armed| 1 + u32::from(was_armed));
                let short = pair(was_armed << 8 | u32::from(mode.0), function.0);
                Fields::new([timer.0, expires.0, soft_expires.0], short)
            }
            Event::HrtimerExpireEntry { timer, now, function } => {
                Fields::new([timer.0, now.0], function.0.into())
            }
            Event::WriteMsr { register, value } => Fields::new([value], register.into()),
            Event::TimerBaseIdle { is_idle, base } => Fields::new([], pair(is_idle.into(), base.0)),
            Event::TickStop { success, dependency } => {
                Fields::new([], pair(success.into(), dependency.0))
            }
            // As a rule, the thread that leaves is the one in which that happens.
            Event::SchedSwitch { prev_pid, next_pid } => {
                Fields::new([], u64::from(prev_pid ^ pid) << 32 | u64::from(next_pid))
            }
            Event::SchedWakeup { pid, target } => Fields::new([], pair(pid, target.0)),
            // So that the end of idling, which is the highest number, is a small one.
            Event::CpuIdle { state, cpu } => Fields::new([], pair(state.wrapping_add(1), cpu.0)),
            Event::SoftirqEntry { vector: number }
            | Event::SoftirqExit { vector: number }
            | Event::IrqEntry { irq: number }
            | Event::IrqExit { irq: number } => Fields::new([], number.into()),
            Event::TaskNew { pid, is_thread } => Fields::new([], pair(pid, is_thread.into())),
            Event::LocalTimerEntry
            | Event::LocalTimerExit
            | Event::RescheduleEntry
            | Event::RescheduleExit
            | Event::ItimerState
            | Event::ItimerExpire => Fields::new([], 0),
        }
    }

    fn new<const COUNT: usize>(used: [u64; COUNT], short: u64) -> Fields {
        let mut longs = [0; LONGS_MAX];
        longs[..COUNT].copy_from_slice(&used);
        Fields { longs, short, count: COUNT }
    }

    /// The numbers of an event for which [`Fields::short`] was `short`.
    pub(super) fn of_short(short: u64) -> Fields {
        Fields::new([], short)
    }

    /// The only number, if there is no other.
    pub(super) fn short(&self) -> Option<u64> {
        (self.count == 0).then_some(self.short)
    }

    /// The event again. `kind` and `pid` are as they were in [`Fields::of`].
    pub(super) fn event(&self, kind: EventKind, pid: u32) -> Event {
        let &Fields { longs: [first, second, third], short, .. } = self;
        let (timer, low, high) = (TimerAddr(first), short as u16, (short >> 16) as u32);
        match kind {
            EventKind::TimerInit => Event::TimerInit { timer },
            EventKind::TimerStart => Event::TimerStart {
                timer,
                expires: Jiffy(second),
                now: Jiffy(third),
                function: NameId(low),
                base: CpuId(high as u16),
                bucket: Bucket((short >> 32) as u16),
                flags: TimerFlags((short >> 48) as u8),
            },
            EventKind::TimerCancel => Event::TimerCancel { timer },
            EventKind::TimerExpireEntry => Event::TimerExpireEntry {
                timer,
                now: Jiffy(second),
                base_clock: Jiffy(third),
                function: NameId(low),
            },
            EventKind::TimerExpireExit => Event::TimerExpireExit { timer },
            EventKind::HrtimerSetup => {
                let clock = ClockId::ALL[usize::from(low)];
                Event::HrtimerSetup { timer, clock, mode: HrtimerMode(high as u8) }
            }
            EventKind::HrtimerStart => Event::HrtimerStart {
                timer,
                expires: Ns(second),
                soft_expires: Ns(third),
                function: NameId(low),
                mode: HrtimerMode(high as u8),
                was_armed: [None, Some(false), Some(true)][(high >> 8) as usize],
            },
            EventKind::HrtimerCancel => Event::HrtimerCancel { timer },
            EventKind::HrtimerExpireEntry => {
                Event::HrtimerExpireEntry { timer, now: Ns(second), function: NameId(low) }
            }
            EventKind::HrtimerExpireExit => Event::HrtimerExpireExit { timer },
            EventKind::TimerBaseIdle => {
                Event::TimerBaseIdle { is_idle: high != 0, base: CpuId(low) }
            }
            EventKind::TickStop => Event::TickStop { success: high != 0, dependency: NameId(low) },
            EventKind::LocalTimerEntry => Event::LocalTimerEntry,
            EventKind::LocalTimerExit => Event::LocalTimerExit,
            EventKind::RescheduleEntry => Event::RescheduleEntry,
            EventKind::RescheduleExit => Event::RescheduleExit,
            EventKind::WriteMsr => Event::WriteMsr { register: short as u32, value: first },
            EventKind::SchedSwitch => {
                Event::SchedSwitch { prev_pid: (short >> 32) as u32 ^ pid, next_pid: short as u32 }
            }
            EventKind::SchedWakeup => Event::SchedWakeup { pid: high, target: CpuId(low) },
            EventKind::CpuIdle => Event::CpuIdle { state: high.wrapping_sub(1), cpu: CpuId(low) },
            EventKind::SoftirqEntry => Event::SoftirqEntry { vector: short as u32 },
            EventKind::SoftirqExit => Event::SoftirqExit { vector: short as u32 },
            EventKind::IrqEntry => Event::IrqEntry { irq: short as u32 },
            EventKind::IrqExit => Event::IrqExit { irq: short as u32 },
            EventKind::TaskNew => Event::TaskNew { pid: high, is_thread: low != 0 },
            EventKind::ItimerState => Event::ItimerState,
            EventKind::ItimerExpire => Event::ItimerExpire,
        }
    }

    /// Puts the numbers behind `words`.
    pub(super) fn write(&self, kind: EventKind, words: &mut Vec<u32>) {
        let halves = |number: u64| [number as u32, (number >> 32) as u32];
        let (longs, short) = shape(kind);
        words.extend(self.longs[..longs].iter().flat_map(|&long| halves(long)));
        words.extend(&halves(self.short)[..short]);
    }

    /// The numbers of an event of this kind, with which `words` begin.
    pub(super) fn read(kind: EventKind, words: &[u32]) -> Fields {
        let (count, short) = shape(kind);
        let word = |at: usize| u64::from(words[at]);
        let long = |at: usize| word(at) | word(at + 1) << 32;
        let mut longs = [0; LONGS_MAX];
        for (at, place) in longs[..count].iter_mut().enumerate() {
            *place = long(2 * at);
        }
        let short = match short {
            0 => 0,
            1 => word(2 * count),
            _ => long(2 * count),
        };
        Fields { longs, short, count }
    }
}

/// Two numbers in one, which is small if the upper one is.
fn pair(upper: u32, lower: u16) -> u64 {
    u64::from(upper) << 16 | u64::from(lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::attributes::Context;
    use crate::read::{Record, Records};
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// An event of every kind, of any numbers.
    fn events(
        [first, second, third]: [u64; 3],
        [one, other]: [u32; 2],
        [word, more, cpu]: [u16; 3],
        [low, high]: [u8; 2],
    ) -> Vec<Event> {
        let (timer, function, cpu) = (TimerAddr(first), NameId(word), CpuId(cpu));
        let (mode, flags, bucket) = (HrtimerMode(low), TimerFlags(high), Bucket(more));
        let (expires, now, base_clock) = (Jiffy(second), Jiffy(third), Jiffy(third));
        let was_armed = [None, Some(false), Some(true)][usize::from(high) % 3];
        let clock = ClockId::ALL[usize::from(low) % ClockId::ALL.len()];
        let soft_expires = Ns(third);
        let is_so = low % 2 == 1;
        vec![
            Event::TimerInit { timer },
            Event::TimerStart { timer, expires, now, function, base: cpu, bucket, flags },
            Event::TimerCancel { timer },
            Event::TimerExpireEntry { timer, now: expires, base_clock, function },
            Event::TimerExpireExit { timer },
            Event::HrtimerSetup { timer, clock, mode },
            Event::HrtimerStart {
                timer,
                expires: Ns(second),
                soft_expires,
                function,
                mode,
                was_armed,
            },
            Event::HrtimerCancel { timer },
            Event::HrtimerExpireEntry { timer, now: Ns(second), function },
            Event::HrtimerExpireExit { timer },
            Event::TimerBaseIdle { is_idle: is_so, base: cpu },
            Event::TickStop { success: is_so, dependency: function },
            Event::LocalTimerEntry,
            Event::LocalTimerExit,
            Event::RescheduleEntry,
            Event::RescheduleExit,
            Event::WriteMsr { register: one, value: first },
            Event::SchedSwitch { prev_pid: one, next_pid: other },
            Event::SchedWakeup { pid: one, target: cpu },
            Event::CpuIdle { state: one, cpu },
            Event::SoftirqEntry { vector: one },
            Event::SoftirqExit { vector: one },
            Event::IrqEntry { irq: one },
            Event::IrqExit { irq: one },
            Event::TaskNew { pid: one, is_thread: is_so },
            Event::ItimerState,
            Event::ItimerExpire,
        ]
    }

    /// Numbers that are small, of any size, and the largest.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..4_u64, any::<u32>().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
    }

    proptest! {
        /// Goal: what is read of a trace is what was put there, whatever it is.
        #[test]
        fn nothing_is_lost(
            longs in [number(), number(), number()],
            numbers in [number(), number(), number()],
            words in any::<[u16; 3]>(),
            bytes in any::<[u8; 2]>(),
            place in 0..Context::ALL.len(),
        ) {
            let [one, other, pid] = numbers.map(|number| number as u32);
            let events = events(longs, [one, other], words, bytes);
            let kinds: HashSet<EventKind> = events.iter().map(Event::kind).collect();
            prop_assert_eq!(kinds.len(), EventKind::ALL.len());
            // In the thread that a switch leaves, and in any other.
            let records: Vec<Record> = [pid, one]
                .into_iter()
                .flat_map(|pid| events.iter().map(move |&event| (event, pid)))
                .map(|(event, pid)| {
                    let [time, cpu] = [Ns(longs[0]), Ns(longs[1])];
                    let context = Context::ALL[place];
                    Record { time, event, line: other, cpu: CpuId(cpu.0 as u16), context, pid }
                })
                .collect();
            let packed: Records = records.iter().copied().collect();
            prop_assert!(packed.iter().eq(records.iter().copied()));
            prop_assert!(packed.iter().rev().eq(records.iter().rev().copied()));
            prop_assert!(packed.kinds().eq(records.iter().map(|record| record.event.kind())));
            prop_assert!(packed.bytes() <= 56 * records.len());
            prop_assert_eq!(packed.at(7), records[7]);
        }
    }
}
