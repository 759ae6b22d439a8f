//! Values of one byte in events: timer modes, clocks, and what the CPU was executing.

use super::fields::Word;

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
    /// A hardware interrupt that has asked for another task, in code that can be preempted: at the
    /// interrupt's end the scheduler runs.
    HardIrqThenSchedule,
}

impl Context {
    /// Returns whether the event occurred in a hardware interrupt; `None` where not recorded.
    pub fn in_hard_irq(self) -> Option<bool> {
        let is_hard = matches!(self, Context::HardIrq | Context::HardIrqThenSchedule);
        (self != Context::NotRecorded).then_some(is_hard)
    }

    /// Reads the flags of a record, in the kernel's bits, and its preemption depth.
    pub(super) fn from_flags(flags: u8, depth: u8) -> Context {
        const NEED_RESCHED: u8 = 0x04;
        const HARDIRQ: u8 = 0x08;
        const SOFTIRQ: u8 = 0x10;
        const NMI: u8 = 0x40;
        const THEN_SCHEDULE: u8 = HARDIRQ | NEED_RESCHED;
        match flags {
            flags if flags & (THEN_SCHEDULE | SOFTIRQ | NMI) == THEN_SCHEDULE && depth == 0 => {
                Context::HardIrqThenSchedule
            }
            flags if flags & (HARDIRQ | NMI) != 0 => Context::HardIrq,
            flags if flags & SOFTIRQ != 0 => Context::SoftIrq,
            _ => Context::Task,
        }
    }

    /// Reads ftrace's flags column. Its letters are: interrupts off, need to reschedule, context,
    /// preemption depth.
    pub(super) fn from_column(column: &[u8]) -> Context {
        match column.get(2) {
            Some(b'.') => Context::Task,
            Some(b's') => Context::SoftIrq,
            // Capital letters and `n`, `b` ask for another task now, `l` and `p` do not.
            Some(b'h') if matches!(column, [_, b'N' | b'B' | b'n' | b'b', _, b'.', ..]) => {
                Context::HardIrqThenSchedule
            }
            // `H` is a hardware interrupt in a softirq; `z` and `Z` are non-maskable interrupts.
            Some(b'h' | b'H' | b'z' | b'Z') => Context::HardIrq,
            _ => Context::NotRecorded,
        }
    }
}

/// How a high-resolution timer will be used, in the kernel's bits (Linux include/linux/hrtimer.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HrtimerMode(pub(super) u8);

impl HrtimerMode {
    const RELATIVE: u8 = 1;
    const SOFT: u8 = 4;

    /// Returns whether the timer is started with durations. The printed expiry is always absolute.
    pub fn is_relative(self) -> bool {
        self.0 & Self::RELATIVE != 0
    }

    pub fn is_soft(self) -> bool {
        self.0 & Self::SOFT != 0
    }

    /// Reads a mode: a number, or names of its bits with `|` between them.
    pub(super) fn of(word: Word<'_>) -> Option<HrtimerMode> {
        if let Some(raw) = word.number() {
            return u8::try_from(raw).ok().filter(|raw| *raw < 32).map(HrtimerMode);
        }
        let word = word.text()?;
        let bits = |word: &[u8]| match word {
            b"ABS" => Some(0),
            b"REL" => Some(Self::RELATIVE),
            b"PINNED" => Some(2),
            b"SOFT" => Some(Self::SOFT),
            b"HARD" => Some(8),
            b"LAZY_REARM" => Some(16),
            _ => None,
        };
        let mut words = word.split(|&byte| byte == b'|');
        words.try_fold(0, |mode, word| Some(mode | bits(word)?)).map(HrtimerMode)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockId {
    Monotonic,
    /// CLOCK_REALTIME, the wall-clock time since 1970. It can be set, and is decades ahead of the
    /// clocks that begin at boot.
    Realtime,
    Boottime,
    Tai,
    Other,
}

impl ClockId {
    pub(crate) const COUNT: usize = 5;

    pub(super) fn of(word: Word<'_>) -> ClockId {
        match (word.number(), word.text()) {
            (Some(1), _) | (_, Some(b"CLOCK_MONOTONIC")) => ClockId::Monotonic,
            (Some(0), _) | (_, Some(b"CLOCK_REALTIME")) => ClockId::Realtime,
            (Some(7), _) | (_, Some(b"CLOCK_BOOTTIME")) => ClockId::Boottime,
            (Some(11), _) | (_, Some(b"CLOCK_TAI")) => ClockId::Tai,
            _ => ClockId::Other,
        }
    }
}
