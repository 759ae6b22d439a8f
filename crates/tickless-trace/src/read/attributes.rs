//! The small words in an event's line: modes, flags, clocks, and the context column.
//!
//! Each is one or two bytes, and each says "not printed" in its own way: older kernels
//! leave words out, and a guess would be replayed as if it were recorded.

/// Where the CPU was when the event happened, from the third letter of ftrace's flags
/// column (`d.h1.`). Perf, and trace-cmd before version 3, do not print the column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// The line has no flags column.
    NotRecorded,
    /// In a task, or in the idle loop.
    Task,
    /// In a softirq: where the wheel's callbacks run.
    SoftIrq,
    /// In a hardware interrupt.
    HardIrq,
    /// In a hardware interrupt that came during a softirq.
    HardIrqInSoftIrq,
    /// In a non-maskable interrupt.
    Nmi,
}

impl Context {
    /// All, in the order of their numbers.
    pub(super) const ALL: [Context; 6] = [
        Context::NotRecorded,
        Context::Task,
        Context::SoftIrq,
        Context::HardIrq,
        Context::HardIrqInSoftIrq,
        Context::Nmi,
    ];

    /// Whether the event happened in a hardware interrupt; `None` where not recorded.
    pub fn in_hard_irq(self) -> Option<bool> {
        match self {
            Context::NotRecorded => None,
            Context::Task | Context::SoftIrq => Some(false),
            Context::HardIrq | Context::HardIrqInSoftIrq | Context::Nmi => Some(true),
        }
    }

    /// Reads a flags column: irqs-off, need-resched, *this*, preempt depth, more.
    pub(super) fn from_flags(flags: &[u8]) -> Context {
        match flags.get(2) {
            Some(b'.') => Context::Task,
            Some(b's') => Context::SoftIrq,
            Some(b'h') => Context::HardIrq,
            Some(b'H') => Context::HardIrqInSoftIrq,
            Some(b'z' | b'Z') => Context::Nmi,
            _ => Context::NotRecorded,
        }
    }
}

/// What kind of wheel timer it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimerFlags(pub(super) u8);

impl TimerFlags {
    const MIGRATING: u8 = 1;
    const DEFERRABLE: u8 = 2;
    const PINNED: u8 = 4;
    const IRQSAFE: u8 = 8;

    /// Does not wake an idle CPU.
    pub fn is_deferrable(self) -> bool {
        self.0 & Self::DEFERRABLE != 0
    }

    /// Stays on the CPU it was started for.
    pub fn is_pinned(self) -> bool {
        self.0 & Self::PINNED != 0
    }

    /// Its callback runs with interrupts off.
    pub fn is_irqsafe(self) -> bool {
        self.0 & Self::IRQSAFE != 0
    }

    /// Was between two bases when the line was printed.
    pub fn is_migrating(self) -> bool {
        self.0 & Self::MIGRATING != 0
    }

    /// Reads `D|P|I`, an empty word, or the raw word older kernels print (`0x00300001`).
    pub(super) fn parse(word: &[u8]) -> Option<TimerFlags> {
        if let Some(raw) = raw_timer_flags(word) {
            return Some(TimerFlags::of_word(raw));
        }
        let mut flags = 0;
        for letter in word.split(|&byte| byte == b'|').filter(|letter| !letter.is_empty()) {
            flags |= match letter {
                b"M" => Self::MIGRATING,
                b"D" => Self::DEFERRABLE,
                b"P" => Self::PINNED,
                b"I" => Self::IRQSAFE,
                _ => return None,
            };
        }
        Some(TimerFlags(flags))
    }

    /// Reads the kernel's word.
    pub(super) fn of_word(raw: u64) -> TimerFlags {
        // Linux include/linux/timer.h: bit 18 on, in this order.
        TimerFlags((raw >> 18 & 0xf) as u8)
    }
}

/// The CPU in a raw flags word, for kernels that print no `cpu=`.
pub(super) fn raw_flags_cpu(word: &[u8]) -> Option<u64> {
    raw_timer_flags(word).map(|raw| raw & 0x3_ffff)
}

fn raw_timer_flags(word: &[u8]) -> Option<u64> {
    word.strip_prefix(b"0x").and_then(super::fields::hex)
}

/// Which of a wheel's buckets a timer went to: level times 64, plus the place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket(pub(super) u16);

impl Bucket {
    pub(super) const NOT_PRINTED: Bucket = Bucket(u16::MAX);

    /// The bucket's number; `None` where the kernel did not print it.
    pub fn index(self) -> Option<u16> {
        (self != Self::NOT_PRINTED).then_some(self.0)
    }

    /// The level: 0 holds single ticks, each further one is 8 times coarser.
    pub fn level(self) -> Option<u16> {
        self.index().map(|index| index / 64)
    }

    pub(super) fn new(index: u64) -> Option<Bucket> {
        u16::try_from(index).ok().map(Bucket).filter(|bucket| *bucket != Self::NOT_PRINTED)
    }
}

/// How a high-resolution timer is queued. All clear means the kernel did not print it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HrtimerMode(pub(super) u8);

impl HrtimerMode {
    const ABSOLUTE: u8 = 1;
    const RELATIVE: u8 = 2;
    const PINNED: u8 = 4;
    const SOFT: u8 = 8;
    const HARD: u8 = 16;

    /// Whether the line had a mode at all.
    pub fn is_printed(self) -> bool {
        self.0 & (Self::ABSOLUTE | Self::RELATIVE) != 0
    }

    /// The caller gave a distance; the printed expiry is absolute all the same.
    pub fn is_relative(self) -> bool {
        self.0 & Self::RELATIVE != 0
    }

    /// Stays on the CPU it was started on.
    pub fn is_pinned(self) -> bool {
        self.0 & Self::PINNED != 0
    }

    /// Its callback runs in a softirq. What `hrtimer_start` prints is what its caller
    /// passed: only the mode of `hrtimer_setup` is binding.
    pub fn is_soft(self) -> bool {
        self.0 & Self::SOFT != 0
    }

    /// Its callback runs in the hardware interrupt even on a real-time kernel.
    pub fn is_hard(self) -> bool {
        self.0 & Self::HARD != 0
    }

    /// Reads `ABS|PINNED|HARD`, or the number where the tool did not know the words.
    pub(super) fn parse(word: &[u8]) -> Option<HrtimerMode> {
        if let Some(raw) = super::fields::number(word) {
            return HrtimerMode::of_number(raw);
        }
        let mut mode = 0;
        for part in word.split(|&byte| byte == b'|') {
            mode |= match part {
                b"ABS" => Self::ABSOLUTE,
                b"REL" => Self::RELATIVE,
                b"PINNED" => Self::PINNED,
                b"SOFT" => Self::SOFT,
                b"HARD" => Self::HARD,
                _ => return None,
            };
        }
        Some(HrtimerMode(mode))
    }

    /// Reads the kernel's number.
    pub(super) fn of_number(raw: u64) -> Option<HrtimerMode> {
        // Linux include/linux/hrtimer.h: REL 1, PINNED 2, SOFT 4, HARD 8, ABS none.
        let base = if raw & 1 != 0 { Self::RELATIVE } else { Self::ABSOLUTE };
        (raw < 16).then_some(HrtimerMode(base | (raw as u8 & 0xe) << 1))
    }
}

/// The clock a high-resolution timer's expiry is measured on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockId {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_REALTIME: may be set; its `now` is decades away from the others.
    Realtime,
    /// CLOCK_BOOTTIME.
    Boottime,
    /// CLOCK_TAI.
    Tai,
    /// One this reader does not know.
    Other,
}

impl ClockId {
    /// All, in the order of their numbers.
    pub(super) const ALL: [ClockId; 5] =
        [ClockId::Monotonic, ClockId::Realtime, ClockId::Boottime, ClockId::Tai, ClockId::Other];

    pub(super) fn parse(word: &[u8]) -> ClockId {
        match word {
            b"CLOCK_MONOTONIC" => ClockId::Monotonic,
            b"CLOCK_REALTIME" => ClockId::Realtime,
            b"CLOCK_BOOTTIME" => ClockId::Boottime,
            b"CLOCK_TAI" => ClockId::Tai,
            _ => super::fields::number(word).map_or(ClockId::Other, ClockId::of_number),
        }
    }

    /// Reads the kernel's number.
    pub(super) fn of_number(raw: u64) -> ClockId {
        match raw {
            1 => ClockId::Monotonic,
            0 => ClockId::Realtime,
            7 => ClockId::Boottime,
            11 => ClockId::Tai,
            _ => ClockId::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_flags_read_letters_and_raw_words() {
        let all = TimerFlags::parse(b"D|P|I").unwrap();
        assert!(all.is_deferrable() && all.is_pinned() && all.is_irqsafe());
        assert_eq!(TimerFlags::parse(b""), Some(TimerFlags::default()));
        assert_eq!(TimerFlags::parse(b"D|X"), None);
        let raw = TimerFlags::parse(b"0x00100001").unwrap();
        assert!(raw.is_pinned() && !raw.is_deferrable());
        assert_eq!(raw_flags_cpu(b"0x00100001"), Some(1));
    }

    #[test]
    fn hrtimer_modes_read_words_and_numbers_alike() {
        for (words, number) in [
            (&b"ABS"[..], &b"0"[..]),
            (b"REL", b"1"),
            (b"ABS|PINNED", b"0x2"),
            (b"ABS|PINNED|HARD", b"10"),
            (b"REL|PINNED|SOFT", b"7"),
        ] {
            assert_eq!(HrtimerMode::parse(words), HrtimerMode::parse(number));
            assert!(HrtimerMode::parse(words).unwrap().is_printed());
        }
        assert_eq!(HrtimerMode::parse(b"ABS|NEW"), None);
        assert!(!HrtimerMode::default().is_printed());
    }
}
