//! Packs the fields of events into bits, in which [`Records`](super::Records) keeps them to save
//! memory.

use super::attributes::{ClockId, HrtimerMode};
use super::build::Value;
use super::event::{Jiffy, TimerAddr};
use super::names::{NameId, Names};
use super::prefix::cpu_id;
use tickless_core::time::{CpuId, Ns};

/// A type of an event's field: how it is read from a trace, and packed into a fixed number of bits.
pub(super) trait FieldType: Copy {
    const BITS: u32;
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;

    /// Reads a recorded value. Returns `None` if it is unreadable.
    fn read(value: Value<'_>, names: &mut Names) -> Option<Self>;

    /// Returns the value that stands for a field that was not recorded, in an event on this CPU.
    /// `None` if every kernel records such fields, so that the event is damaged.
    fn missing(_: CpuId) -> Option<Self> {
        None
    }
}

macro_rules! field_types {
    ($($type:ty, $bits:literal: $to:expr, $from:expr, $read:expr $(, or $missing:expr)?;)*) => {
        $(impl FieldType for $type {
            const BITS: u32 = $bits;
            fn to_bits(self) -> u64 {
                let to: fn($type) -> u64 = $to;
                to(self)
            }
            fn from_bits(bits: u64) -> $type {
                let from: fn(u64) -> $type = $from;
                from(bits)
            }
            fn read(value: Value<'_>, names: &mut Names) -> Option<$type> {
                let read: fn(Value<'_>, &mut Names) -> Option<$type> = $read;
                read(value, names)
            }
            $(fn missing(cpu: CpuId) -> Option<$type> {
                let missing: fn(CpuId) -> $type = $missing;
                Some(missing(cpu))
            })?
        })*
    };
}

// For each type: its number of bits, and its conversions to bits, from bits and from a recorded
// value. After `or`: the value that stands for a field that was not recorded.
field_types! {
    u64, 64: |value| value, |bits| bits, |value, _| value.number();
    u32, 32: u64::from, |bits| bits as u32, |value, _| value.small();
    bool, 8: u64::from, |bits| bits & 1 != 0, |value, _| value.number().map(|bool| bool != 0);
    // Kernels record `None` as the largest number. It is packed as 0, because small numbers take
    // less memory.
    Option<u32>, 32: |value| value.map_or(0, |value| value.wrapping_add(1).into()),
        |bits| (bits as u32).checked_sub(1),
        |value, _| value.small().map(|value| Some(value).filter(|value| *value != u32::MAX));
    Option<bool>, 8: |value| value.map_or(0, |value| 1 + u64::from(value)),
        |bits| match bits as u8 { 0 => None, value => Some(value == 2) },
        |value, _| value.number().map(|value| Some(value != 0)), or |_| None;
    Ns, 64: |ns| ns.0, Ns, |value, _| value.number().map(Ns);
    // Early in boot, kernels print `(____ptrval____)` for every address. It is unreadable.
    TimerAddr, 64: |timer| timer.0, TimerAddr, |value, _| value.hex().map(TimerAddr);
    Jiffy, 64: |jiffy| jiffy.0, Jiffy, |value, _| value.number().map(Jiffy);
    CpuId, 16: |cpu| cpu.0.into(), |bits| CpuId(bits as u16),
        |value, _| value.number().and_then(cpu_id), or |cpu| cpu;
    NameId, 16: |name| name.0.into(), |bits| NameId(bits as u16),
        |value, names| Some(names.function(value)), or |_| NameId::UNKNOWN;
    HrtimerMode, 8: |mode| mode.0.into(), |bits| HrtimerMode(bits as u8),
        |value, _| HrtimerMode::of(value), or |_| HrtimerMode::default();
    ClockId, 8: |clock| clock as u64,
        |bits| *ClockId::ALL.get(usize::from(bits as u8)).unwrap_or(&ClockId::Other),
        |value, _| Some(ClockId::of(value));
}

/// The number of 64-bit words that the largest event takes.
const WORDS_MAX: usize = 4;

/// Packed values, which are taken out in the order in which they were pushed. No value is split
/// between two words, because every event has its 64-bit fields first, and its other fields fit
/// into one word.
#[derive(Default)]
pub(super) struct Bits {
    words: [u64; WORDS_MAX],
    /// How many bits have been pushed; while values are taken out, how many have been taken.
    at: u32,
}

impl Bits {
    pub(super) fn push<T: FieldType>(&mut self, value: T) {
        self.words[(self.at / 64) as usize] |= value.to_bits() << (self.at % 64);
        self.at += T::BITS;
    }

    /// Takes the next value. The bits above the value may be those of later values, so `from_bits`
    /// must ignore them.
    pub(super) fn take<T: FieldType>(&mut self) -> T {
        let bits = self.words[(self.at / 64) as usize] >> (self.at % 64);
        self.at += T::BITS;
        T::from_bits(bits)
    }

    pub(super) fn number(&self) -> Option<u64> {
        (self.at <= 64).then_some(self.words[0])
    }

    pub(super) fn from_number(number: u64) -> Bits {
        Bits { words: [number, 0, 0, 0], at: 0 }
    }

    pub(super) fn write(&self, words: &mut Vec<u32>) {
        let halves = self.words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
        words.extend(halves.take(self.at.div_ceil(32) as usize));
    }

    pub(super) fn read(words: &[u32], bits: u32) -> Bits {
        let mut read = Bits::default();
        for (at, &word) in words[..bits.div_ceil(32) as usize].iter().enumerate() {
            read.words[at / 2] |= u64::from(word) << (at % 2 * 32);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::attributes::Context;
    use crate::read::event::{Event, EventKind};
    use crate::read::{Record, Records};
    use proptest::prelude::*;

    /// Small numbers, numbers of any size, and the largest.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..4_u64, any::<u32>().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
    }

    /// Returns an event of every kind, unpacked from these bits.
    fn events(words: [u64; WORDS_MAX]) -> Vec<Event> {
        let event = |&kind: &EventKind| Event::unpack(kind, &mut Bits { words, at: 0 });
        EventKind::ALL.iter().map(event).collect()
    }

    proptest! {
        /// Goal: packed records are read back unchanged: forwards, backwards and by index.
        #[test]
        fn records_survive_packing(
            words in [number(), number(), number(), number()],
            time in number(),
            [line, pid] in any::<[u32; 2]>(),
            cpu in any::<u16>(),
            place in 0..Context::ALL.len(),
        ) {
            let records: Vec<Record> = events(words)
                .into_iter()
                .map(|event| {
                    let context = Context::ALL[place];
                    Record { time: Ns(time), event, line, cpu: CpuId(cpu), context, pid }
                })
                .collect();
            let packed: Records = records.iter().copied().collect();
            prop_assert!(packed.iter().eq(records.iter().copied()));
            prop_assert!(packed.iter().rev().eq(records.iter().rev().copied()));
            prop_assert!(packed.kinds().eq(EventKind::ALL.iter().copied()));
            prop_assert!(packed.bytes() <= 56 * records.len());
            prop_assert_eq!(packed.at(7), records[7]);
        }
    }
}
