//! Reads the values of an event's fields, printed or recorded, from which
//! [`Event`](super::Event) is built.
//!
//! A field that every kernel prints is required. A field that only some kernels print has a value
//! for "not printed". This distinguishes a line that was cut off, which is an error, from a line of
//! an older kernel.

use tickless_core::time::{CpuId, Ns};

use super::attributes::{ClockId, HrtimerMode};
use super::dat::Field;
use super::event::{EventKind, Jiffy, TimerAddr};
use super::fields::{Word, decimal, fields, find, hash, hex, signed};
use super::names::{NameId, Names};
use super::prefix::cpu_id;
use super::problem::Cause;

/// The text of an event, from which the values of fields are read.
pub(super) struct Reading<'a, 'n> {
    pub(super) kind: EventKind,
    text: &'a [u8],
    fields: Fields<'a, 'n>,
    cpu: CpuId,
    names: &'n mut Names,
}

enum Fields<'a, 'n> {
    /// The keys and values in the text.
    Printed(&'n [(&'a [u8], &'a [u8])]),
    /// Where each field is in the record.
    Recorded(&'a [Field], &'a [u8]),
}

impl<'a, 'n> Reading<'a, 'n> {
    /// Prepares to read an event of a text. `of_text` takes the text's fields, in its own memory.
    pub(super) fn new(
        kind: EventKind,
        text: &'a [u8],
        cpu: CpuId,
        names: &'n mut Names,
        of_text: &'n mut Vec<(&'a [u8], &'a [u8])>,
    ) -> Reading<'a, 'n> {
        of_text.clear();
        of_text.extend(fields(text));
        Reading { kind, text, fields: Fields::Printed(of_text), cpu, names }
    }

    /// Prepares to read an event as the kernel recorded it.
    pub(super) fn of_record(
        kind: EventKind,
        format: &'a [Field],
        record: &'a [u8],
        cpu: CpuId,
        names: &'n mut Names,
    ) -> Reading<'a, 'n> {
        Reading { kind, text: b"", fields: Fields::Recorded(format, record), cpu, names }
    }

    /// Returns the last printed value of this name: the name of a task, before it, can look like
    /// one.
    #[inline(always)]
    fn field(&self, name: &str) -> Option<Word<'a>> {
        match &self.fields {
            Fields::Printed(fields) => {
                let mut fields = fields.iter().rev();
                fields.find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| Word::Text(value))
            }
            Fields::Recorded(format, record) => {
                // Where this is inlined, the hash is a constant.
                let hash = hash(name.as_bytes());
                let field = format.iter().rev().find(|field| field.name == hash)?;
                field.of(record).map(Word::Number)
            }
        }
    }

    /// Reads a field by the kernel's name for it; `None` if it was not recorded, since only some
    /// kernels have it.
    #[inline(always)]
    pub(super) fn optional<T: FieldType>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, Cause> {
        let value = self.field(name).or_else(|| self.of_trace_cmd(name).map(Word::Text));
        let Some(word) = value else { return Ok(None) };
        T::read(word, self.names).map(Some).ok_or_else(|| self.unreadable(name))
    }

    /// Reads a field. If it was not recorded, returns the value of its type for "not recorded"
    /// (`FieldType::missing`), or an error if the type has no such value.
    #[inline(always)]
    pub(super) fn required<T: FieldType>(&mut self, name: &'static str) -> Result<T, Cause> {
        let value = self.optional(name)?.or_else(|| T::missing(self.cpu));
        value.ok_or_else(|| self.missing(name))
    }

    fn missing(&self, field: &'static str) -> Cause {
        Cause::MissingField { event: self.kind, field }
    }

    fn unreadable(&self, field: &'static str) -> Cause {
        Cause::UnreadableField { event: self.kind, field }
    }

    /// Finds a value in trace-cmd's own forms of two events, which have no names of fields:
    /// `comm:7 [120] S ==> swapper:0 [120]` and `comm:7 [120] CPU:000`.
    fn of_trace_cmd(&self, name: &str) -> Option<&'a [u8]> {
        // Search from the end: names of tasks, before it, can look like any of this.
        match (self.kind, name) {
            (EventKind::SchedSwitch, _) | (EventKind::SchedWakeup, "pid") => {
                pid_before_priority(self.text)
            }
            (EventKind::SchedWakeup, _) => {
                self.text.rsplit(|&byte| byte == b' ').next()?.strip_prefix(b"CPU:")
            }
            _ => None,
        }
    }

    /// Computes in which jiffy a wheel timer was started: its expiry minus its timeout.
    pub(super) fn jiffies_at_start(&mut self) -> Result<Jiffy, Cause> {
        // ftrace's `options/fields` prints what was recorded.
        if let Some(now) = self.optional("now")? {
            return Ok(now);
        }
        let Jiffy(expires) = self.required("expires")?;
        let timeout = self.field("timeout").ok_or(self.missing("timeout"))?;
        let timeout = timeout.text().and_then(signed).ok_or(self.unreadable("timeout"))?;
        Ok(jiffies_now(expires, timeout))
    }

    /// Splits the text of `write_msr`: `6e0, value 63299eb1457`, with ` #GP` if the write failed.
    fn msr_and_value(&self) -> Result<(u64, u64), Cause> {
        // ftrace's `options/fields` prints names.
        if let Some((register, value)) = self.field("msr").zip(self.field("val")) {
            let register = register.number().ok_or(self.unreadable("msr"))?;
            return Ok((register, value.number().ok_or(self.unreadable("val"))?));
        }
        let comma = find(self.text, b", value ").ok_or(self.missing("value"))?;
        let value = self.text[comma + 8..].split(|&byte| byte == b' ').next();
        let value = value.and_then(hex).ok_or(self.unreadable("val"))?;
        let register = hex(&self.text[..comma]).ok_or(self.unreadable("msr"))?;
        Ok((register, value))
    }

    pub(super) fn msr_value(&mut self) -> Result<u64, Cause> {
        Ok(self.msr_and_value()?.1)
    }

    pub(super) fn msr_register(&mut self) -> Result<u32, Cause> {
        let (register, _) = self.msr_and_value()?;
        u32::try_from(register).map_err(|_| self.unreadable("msr"))
    }

    /// Reads the CPU to whose base a wheel timer was added. Older kernels print it only in the
    /// lowest bits of the flags.
    pub(super) fn base_at_start(&mut self) -> Result<CpuId, Cause> {
        let base = self.required("cpu")?;
        let raw = self.raw_timer_flags();
        Ok(raw.and_then(|raw| cpu_id(raw & 0x3_ffff)).unwrap_or(base))
    }

    /// Reads whether the task that a CPU left can still run: `R`, or `R+` if it was preempted.
    pub(super) fn still_runs(&mut self) -> Result<Option<bool>, Cause> {
        /// The bits of the states in which a task waits; the next is set if it was preempted.
        const WAITS: u64 = 0xff;
        let before_arrow = || {
            let end = find(self.text, b" ==> ")?;
            self.text[..end].rsplit(|&byte| byte == b' ').next()
        };
        Ok(match self.field("prev_state") {
            Some(Word::Number(state)) => Some(state & WAITS == 0),
            Some(Word::Text(text)) => match decimal(text) {
                Some(state) => Some(state & WAITS == 0),
                None => Some(text.starts_with(b"R")),
            },
            None => before_arrow().map(|text| text.starts_with(b"R")),
        })
    }

    /// Reads the priority of the task that a CPU switches to. trace-cmd prints it in brackets.
    pub(super) fn next_priority(&mut self) -> Result<Option<i16>, Cause> {
        let in_brackets = || {
            let text = self.text.rsplit(|&byte| byte == b'[').next()?;
            text.split(|&byte| byte == b']').next()
        };
        let number = match self.field("next_prio") {
            // A recorded field has 32 bits, of which the first is the sign.
            Some(Word::Number(bits)) => Some(i64::from((bits as u32).cast_signed())),
            Some(Word::Text(text)) => signed(text),
            None => in_brackets().and_then(signed),
        };
        Ok(number.and_then(|number| i16::try_from(number).ok()))
    }

    /// Reads from the flags of a wheel timer (`D|P|I`) whether it is deferrable.
    pub(super) fn is_deferrable(&mut self) -> Result<bool, Cause> {
        // Linux include/linux/timer.h.
        const DEFERRABLE: u64 = 1 << 19;
        let letters = self.field("flags").and_then(Word::text).unwrap_or_default();
        Ok(match self.raw_timer_flags() {
            Some(raw) => raw & DEFERRABLE != 0,
            None => letters.split(|&byte| byte == b'|').any(|letter| letter == b"D"),
        })
    }

    /// Returns the number in which the kernel keeps the CPU and the flags of a wheel timer. Older
    /// kernels print it (`0x00300001`).
    fn raw_timer_flags(&self) -> Option<u64> {
        match self.field("flags")? {
            Word::Text(text) => text.strip_prefix(b"0x").and_then(hex),
            Word::Number(raw) => Some(raw),
        }
    }
}

fn pid_before_priority(text: &[u8]) -> Option<&[u8]> {
    let end = text.windows(2).rposition(|window| window == b" [")?;
    text[..end].rsplit(|&byte| byte == b':').next()
}

/// Returns the jiffies at a timer's start, `expires - timeout`: the kernel prints `timeout =
/// expires - now`. Jiffies of 32 bits wrap five minutes after boot, so an expiry just after the
/// wrap can be smaller than its timeout.
fn jiffies_now(expires: u64, timeout: i64) -> Jiffy {
    let now = expires.wrapping_sub_signed(timeout);
    let wrapped = expires <= u64::from(u32::MAX) && now > u64::from(u32::MAX) && timeout > 0;
    Jiffy(if wrapped { now & u64::from(u32::MAX) } else { now })
}

/// A type of an event's field.
pub(super) trait FieldType: Copy {
    /// Reads a value. Returns `None` if it is unreadable.
    fn read(word: Word<'_>, names: &mut Names) -> Option<Self>;

    /// Returns the value that stands for a field that was not printed, in an event on this CPU.
    /// `None` if every kernel prints such fields: then the event is damaged.
    fn missing(_: CpuId) -> Option<Self> {
        None
    }
}

macro_rules! field_types {
    ($($type:ty: $read:expr $(, or $missing:expr)?;)*) => {
        $(impl FieldType for $type {
            fn read(word: Word<'_>, names: &mut Names) -> Option<$type> {
                let read: fn(Word<'_>, &mut Names) -> Option<$type> = $read;
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
    Option<bool>: |word, _| word.number().map(|value| Some(value != 0)), or |_| None;
    Ns: |word, _| word.number().map(Ns);
    // Early in boot, kernels print `(____ptrval____)` for every address, which is unreadable.
    TimerAddr: |word, _| word.address().map(TimerAddr);
    Jiffy: |word, _| word.number().map(Jiffy);
    CpuId: |word, _| word.number().and_then(cpu_id), or |cpu| cpu;
    NameId: |word, names| Some(names.of_word(word)), or |_| NameId::UNKNOWN;
    HrtimerMode: |word, _| HrtimerMode::of(word), or |_| HrtimerMode::default();
    ClockId: |word, _| Some(ClockId::of(word));
}

fn small(word: Word<'_>) -> Option<u32> {
    word.number().and_then(|number| u32::try_from(number).ok())
}
