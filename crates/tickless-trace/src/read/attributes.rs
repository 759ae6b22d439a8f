//! Modes, clocks and contexts of events: values of one byte.

use super::build::Value;

/// What the CPU was executing when the event occurred. In a text it is the third letter of ftrace's
/// flags column (`d.h1.`), which perf, and trace-cmd before version 3, do not print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    NotRecorded,
    Task,
    /// A softirq, in which the wheel's callbacks run.
    SoftIrq,
    /// A hardware interrupt, or a non-maskable one.
    HardIrq,
}

impl Context {
    /// All contexts, in the order of the numbers under which they are packed.
    pub(super) const ALL: [Context; 4] =
        [Context::NotRecorded, Context::Task, Context::SoftIrq, Context::HardIrq];

    /// Returns whether the event occurred in a hardware interrupt; `None` where not recorded.
    pub fn in_hard_irq(self) -> Option<bool> {
        (self != Context::NotRecorded).then_some(self == Context::HardIrq)
    }

    /// Reads ftrace's flags column. Its letters are: interrupts off, need to reschedule, context,
    /// preemption depth.
    pub(super) fn from_column(column: &[u8]) -> Context {
        match column.get(2) {
            Some(b'.') => Context::Task,
            Some(b's') => Context::SoftIrq,
            // `H` is a hardware interrupt during a softirq; `z` and `Z` are non-maskable
            // interrupts.
            Some(b'h' | b'H' | b'z' | b'Z') => Context::HardIrq,
            _ => Context::NotRecorded,
        }
    }

    pub(super) fn from_flags(flags: u64) -> Context {
        const SOFT: u64 = 0x10;
        const HARD_OR_NMI: u64 = 0x08 | 0x40;
        match (flags & HARD_OR_NMI != 0, flags & SOFT != 0) {
            (true, _) => Context::HardIrq,
            (false, true) => Context::SoftIrq,
            (false, false) => Context::Task,
        }
    }
}

/// How a high-resolution timer will be used, in the kernel's bits (Linux include/linux/hrtimer.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HrtimerMode(pub(super) u8);

impl HrtimerMode {
    const RELATIVE: u8 = 1;
    const SOFT: u8 = 4;

    /// Returns whether the timer is started with durations, not times. The printed expiry is
    /// absolute in any case.
    pub fn is_relative(self) -> bool {
        self.0 & Self::RELATIVE != 0
    }

    pub fn is_soft(self) -> bool {
        self.0 & Self::SOFT != 0
    }

    pub(super) fn of(value: Value<'_>) -> Option<HrtimerMode> {
        if let Some(raw) = value.number() {
            return u8::try_from(raw).ok().filter(|raw| *raw < 16).map(HrtimerMode);
        }
        let bits = |word: &[u8]| match word {
            b"ABS" => Some(0),
            b"REL" => Some(Self::RELATIVE),
            b"PINNED" => Some(2),
            b"SOFT" => Some(Self::SOFT),
            b"HARD" => Some(8),
            _ => None,
        };
        let mut words = value.word()?.split(|&byte| byte == b'|');
        words.try_fold(0, |mode, word| Some(mode | bits(word)?)).map(HrtimerMode)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockId {
    Monotonic,
    /// CLOCK_REALTIME, the wall-clock time since 1970. It may be set, and is decades ahead of the
    /// clocks that begin at boot.
    Realtime,
    Boottime,
    Tai,
    Other,
}

impl ClockId {
    /// All clocks, in the order of the numbers under which they are packed.
    pub(crate) const ALL: [ClockId; 5] =
        [ClockId::Monotonic, ClockId::Realtime, ClockId::Boottime, ClockId::Tai, ClockId::Other];

    pub(super) fn of(value: Value<'_>) -> ClockId {
        match (value.word(), value.number()) {
            (Some(b"CLOCK_MONOTONIC"), _) | (_, Some(1)) => ClockId::Monotonic,
            (Some(b"CLOCK_REALTIME"), _) | (_, Some(0)) => ClockId::Realtime,
            (Some(b"CLOCK_BOOTTIME"), _) | (_, Some(7)) => ClockId::Boottime,
            (Some(b"CLOCK_TAI"), _) | (_, Some(11)) => ClockId::Tai,
            _ => ClockId::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hrtimer_modes_are_words_or_numbers() {
        for (words, number) in [
            (&b"ABS"[..], &b"0"[..]),
            (b"REL", b"1"),
            (b"ABS|PINNED", b"0x2"),
            (b"ABS|PINNED|HARD", b"10"),
            (b"REL|PINNED|SOFT", b"7"),
        ] {
            let mode = HrtimerMode::of(Value::Word(words));
            assert!(mode.is_some());
            assert_eq!(mode, HrtimerMode::of(Value::Word(number)));
        }
        assert_eq!(HrtimerMode::of(Value::Word(b"ABS|NEW")), None);
    }
}
