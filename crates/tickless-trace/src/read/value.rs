//! The types of events' fields, and how each is read from a word of text.

use super::attributes::{ClockId, HrtimerMode};
use super::event::{Jiffy, TimerAddr};
use super::fields::{hex, number};
use super::names::{NameId, Names};
use super::prefix::cpu_id;
use tickless_core::time::{CpuId, Ns};

/// A type of an event's field.
pub(super) trait FieldType: Copy {
    /// Reads a printed value. Returns `None` if it is unreadable.
    fn read(word: &[u8], names: &mut Names) -> Option<Self>;

    /// Returns the value that stands for a field that was not printed, in an event on this CPU.
    /// `None` if every kernel prints such fields, so that the event is damaged.
    fn missing(_: CpuId) -> Option<Self> {
        None
    }
}

macro_rules! field_types {
    ($($type:ty: $read:expr $(, or $missing:expr)?;)*) => {
        $(impl FieldType for $type {
            fn read(word: &[u8], names: &mut Names) -> Option<$type> {
                let read: fn(&[u8], &mut Names) -> Option<$type> = $read;
                read(word, names)
            }
            $(fn missing(cpu: CpuId) -> Option<$type> {
                let missing: fn(CpuId) -> $type = $missing;
                Some(missing(cpu))
            })?
        })*
    };
}

// After `or`: the value that stands for a field that was not printed.
field_types! {
    u32: |word, _| small(word);
    // Kernels print `None` as the largest number.
    Option<u32>: |word, _| small(word).map(|value| Some(value).filter(|value| *value != u32::MAX));
    Option<bool>: |word, _| number(word).map(|value| Some(value != 0)), or |_| None;
    Ns: |word, _| number(word).map(Ns);
    // Early in boot, kernels print `(____ptrval____)` for every address, which is unreadable.
    TimerAddr: |word, _| hex(word.strip_prefix(b"0x").unwrap_or(word)).map(TimerAddr);
    Jiffy: |word, _| number(word).map(Jiffy);
    CpuId: |word, _| number(word).and_then(cpu_id), or |cpu| cpu;
    NameId: |word, names| Some(names.function(word)), or |_| NameId::UNKNOWN;
    HrtimerMode: |word, _| HrtimerMode::of(word), or |_| HrtimerMode::default();
    ClockId: |word, _| Some(ClockId::of(word));
}

fn small(word: &[u8]) -> Option<u32> {
    number(word).and_then(|number| u32::try_from(number).ok())
}
