//! Modes, flags, clocks and contexts of events: values of one or two bytes.
//!
//! Older kernels do not print some of them. Each type has a value for "not printed", so that a
//! replay never takes a guess for something that was recorded.

use super::build::Value;
use super::fields::hex;

/// What the CPU was executing when the event occurred. Text has it in the third letter of ftrace's
/// flags column (`d.h1.`), which perf, and trace-cmd before version 3, do not print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// Not recorded.
    NotRecorded,
    /// A task, or the idle loop.
    Task,
    /// A softirq, in which the wheel's callbacks run.
    SoftIrq,
    /// A hardware interrupt.
    HardIrq,
    /// A hardware interrupt that interrupted a softirq.
    HardIrqInSoftIrq,
    /// A non-maskable interrupt.
    Nmi,
}

impl Context {
    /// All contexts, in the order of the numbers under which they are packed.
    pub(super) const ALL: [Context; 6] = [
        Context::NotRecorded,
        Context::Task,
        Context::SoftIrq,
        Context::HardIrq,
        Context::HardIrqInSoftIrq,
        Context::Nmi,
    ];

    /// Returns whether the event occurred in a hardware interrupt; `None` where not recorded.
    pub fn in_hard_irq(self) -> Option<bool> {
        match self {
            Context::NotRecorded => None,
            Context::Task | Context::SoftIrq => Some(false),
            Context::HardIrq | Context::HardIrqInSoftIrq | Context::Nmi => Some(true),
        }
    }

    /// Reads ftrace's flags column. Its letters are: interrupts off, need to reschedule, context,
    /// preemption depth.
    pub(super) fn from_column(column: &[u8]) -> Context {
        match column.get(2) {
            Some(b'.') => Context::Task,
            Some(b's') => Context::SoftIrq,
            Some(b'h') => Context::HardIrq,
            Some(b'H') => Context::HardIrqInSoftIrq,
            Some(b'z' | b'Z') => Context::Nmi,
            _ => Context::NotRecorded,
        }
    }

    /// Reads the kernel's `common_flags`.
    pub(super) fn from_flags(flags: u64) -> Context {
        const HARD: u64 = 0x08;
        const SOFT: u64 = 0x10;
        const NMI: u64 = 0x40;
        match (flags & NMI != 0, flags & HARD != 0, flags & SOFT != 0) {
            (true, ..) => Context::Nmi,
            (_, true, true) => Context::HardIrqInSoftIrq,
            (_, true, false) => Context::HardIrq,
            (_, false, true) => Context::SoftIrq,
            (_, false, false) => Context::Task,
        }
    }
}

/// Reads a word of letters joined by `|`, such as `D|P`: returns their flags; `None` if a letter is
/// not in `letters`.
fn flags<const N: usize>(word: &[u8], letters: [(&[u8], u8); N]) -> Option<u8> {
    word.split(|&byte| byte == b'|').filter(|part| !part.is_empty()).try_fold(0, |flags, part| {
        letters.iter().find(|(letter, _)| *letter == part).map(|(_, flag)| flags | flag)
    })
}

/// The properties of a wheel timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimerFlags(pub(super) u8);

impl TimerFlags {
    const MIGRATING: u8 = 1;
    const DEFERRABLE: u8 = 2;
    const PINNED: u8 = 4;
    const IRQSAFE: u8 = 8;

    /// Returns whether the timer is deferrable: it does not wake an idle CPU, but fires once the
    /// CPU is awake for another reason.
    pub fn is_deferrable(self) -> bool {
        self.0 & Self::DEFERRABLE != 0
    }

    /// Returns whether the timer is pinned: it stays on the CPU it was started for.
    pub fn is_pinned(self) -> bool {
        self.0 & Self::PINNED != 0
    }

    /// Returns whether the timer's callback runs with interrupts off.
    pub fn is_irqsafe(self) -> bool {
        self.0 & Self::IRQSAFE != 0
    }

    /// Reads `D|P|I`, an empty word, or the raw number that older kernels print (`0x00300001`).
    pub(super) fn of(value: Value<'_>) -> Option<TimerFlags> {
        // In the raw number, the flags are the bits from 18 on, in the order of the letters below
        // (Linux include/linux/timer.h).
        if let Some(raw) = raw_timer_flags(value) {
            return Some(TimerFlags((raw >> 18 & 0xf) as u8));
        }
        let letters = [
            (&b"M"[..], Self::MIGRATING),
            (b"D", Self::DEFERRABLE),
            (b"P", Self::PINNED),
            (b"I", Self::IRQSAFE),
        ];
        flags(value.word()?, letters).map(TimerFlags)
    }
}

/// Returns the raw number in which the kernel keeps the CPU, the flags and the bucket of a wheel
/// timer, if it was recorded.
pub(super) fn raw_timer_flags(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Number(raw) => Some(raw),
        Value::Word(word) => word.strip_prefix(b"0x").and_then(hex),
        Value::Missing => None,
    }
}

/// The number of the wheel's bucket that a timer was put into: level times 64, plus the place in
/// the level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket(pub(super) u16);

impl Bucket {
    pub(super) const NOT_PRINTED: Bucket = Bucket(u16::MAX);

    /// Returns the bucket's number; `None` where the kernel did not print it.
    pub fn index(self) -> Option<u16> {
        (self != Self::NOT_PRINTED).then_some(self.0)
    }

    /// Returns the bucket's level. Buckets of level 0 are one tick wide, and each further level is
    /// 8 times coarser.
    pub fn level(self) -> Option<u16> {
        self.index().map(|index| index / 64)
    }

    pub(super) fn new(index: u64) -> Option<Bucket> {
        u16::try_from(index).ok().map(Bucket).filter(|bucket| *bucket != Self::NOT_PRINTED)
    }
}

/// How a high-resolution timer is started: its expiry, its CPU and its context. All flags are clear
/// if the kernel did not print them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HrtimerMode(pub(super) u8);

impl HrtimerMode {
    const ABSOLUTE: u8 = 1;
    const RELATIVE: u8 = 2;
    const PINNED: u8 = 4;
    const SOFT: u8 = 8;
    const HARD: u8 = 16;

    /// Returns whether the mode was printed.
    pub fn is_printed(self) -> bool {
        self.0 & (Self::ABSOLUTE | Self::RELATIVE) != 0
    }

    /// Returns whether the timer was started with a duration, not a time. The printed expiry is
    /// absolute in any case.
    pub fn is_relative(self) -> bool {
        self.0 & Self::RELATIVE != 0
    }

    /// Returns whether the timer is pinned: it stays on the CPU it was started on.
    pub fn is_pinned(self) -> bool {
        self.0 & Self::PINNED != 0
    }

    /// Returns whether the callback runs in a softirq. This is certain only for the mode in
    /// `hrtimer_setup`: `hrtimer_start` prints what its caller passed.
    pub fn is_soft(self) -> bool {
        self.0 & Self::SOFT != 0
    }

    /// Returns whether the callback runs in the hardware interrupt even on a real-time kernel.
    pub fn is_hard(self) -> bool {
        self.0 & Self::HARD != 0
    }

    /// Reads `ABS|PINNED|HARD`, or the kernel's number.
    pub(super) fn of(value: Value<'_>) -> Option<HrtimerMode> {
        if let Some(raw) = value.number() {
            // The kernel's numbers (Linux include/linux/hrtimer.h): REL 1, PINNED 2, SOFT 4, HARD
            // 8, ABS none.
            let base = if raw & 1 != 0 { Self::RELATIVE } else { Self::ABSOLUTE };
            return (raw < 16).then_some(HrtimerMode(base | (raw as u8 & 0xe) << 1));
        }
        let words = [
            (&b"ABS"[..], Self::ABSOLUTE),
            (b"REL", Self::RELATIVE),
            (b"PINNED", Self::PINNED),
            (b"SOFT", Self::SOFT),
            (b"HARD", Self::HARD),
        ];
        flags(value.word()?, words).map(HrtimerMode)
    }
}

/// The clock on which a high-resolution timer's expiry is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockId {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_REALTIME, the wall-clock time since 1970. It may be set, and is decades ahead of the
    /// clocks that begin at boot.
    Realtime,
    /// CLOCK_BOOTTIME.
    Boottime,
    /// CLOCK_TAI.
    Tai,
    /// A clock that this reader does not know.
    Other,
}

impl ClockId {
    /// All clocks, in the order of the numbers under which they are packed.
    pub(crate) const ALL: [ClockId; 5] =
        [ClockId::Monotonic, ClockId::Realtime, ClockId::Boottime, ClockId::Tai, ClockId::Other];

    /// Reads the kernel's name or number.
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
    fn timer_flags_are_letters_or_a_raw_word() {
        let of = |word: &'static str| TimerFlags::of(Value::Word(word.as_bytes()));
        let all = of("D|P|I").unwrap();
        assert!(all.is_deferrable() && all.is_pinned() && all.is_irqsafe());
        assert_eq!((of(""), of("D|X")), (Some(TimerFlags::default()), None));
        let raw = of("0x00100001").unwrap();
        assert!(raw.is_pinned() && !raw.is_deferrable());
        assert_eq!(TimerFlags::of(Value::Number(0x0010_0001)), Some(raw));
    }

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
            assert_eq!(mode, HrtimerMode::of(Value::Word(number)));
            assert!(mode.unwrap().is_printed());
        }
        assert_eq!(HrtimerMode::of(Value::Word(b"ABS|NEW")), None);
        assert!(!HrtimerMode::default().is_printed());
    }
}
