//! Builds an [`Event`] from the values of its fields: words in text, numbers in binary recordings.
//!
//! A field that every kernel records is required. A field that only some kernels record has a value
//! for "not printed". This distinguishes a line that was cut off, which is an error, from a line of
//! an older kernel.

use tickless_core::time::CpuId;

use super::event::{Event, EventKind, Jiffy};
use super::fields::{fields, find, hex, number, signed};
use super::names::Names;
use super::pack::FieldType;
use super::prefix;
use super::problem::Cause;

#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Missing,
    Word(&'a [u8]),
    Number(u64),
}

impl<'a> Value<'a> {
    pub(super) fn word(self) -> Option<&'a [u8]> {
        match self {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns the value as a number. Reads a word as decimal, or as hexadecimal if it begins with
    /// `0x`.
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Value::Missing => None,
            Value::Word(word) => number(word),
            Value::Number(number) => Some(number),
        }
    }

    /// Returns the value as a number. Reads a word as hexadecimal, with or without `0x`.
    pub(super) fn hex(self) -> Option<u64> {
        match self {
            Value::Word(word) => hex(word.strip_prefix(b"0x").unwrap_or(word)),
            other => other.number(),
        }
    }

    /// Returns the value as a number of 32 bits. Drops the upper half of a number from a binary
    /// recording, which only extends the sign.
    pub(super) fn small(self) -> Option<u32> {
        match self {
            Value::Number(number) => Some(number as u32),
            other => other.number().and_then(|number| u32::try_from(number).ok()),
        }
    }
}

/// The largest number of fields that are read of an event.
const FIELDS_MAX: usize = 7;

pub(super) struct Fields<'a> {
    kind: EventKind,
    values: [Value<'a>; FIELDS_MAX],
}

/// The indices of the fields of [`EventKind::TimerStart`] from which other fields are computed.
const EXPIRES: usize = 1;
const FLAGS: usize = 5;
const TIMEOUT: usize = 6;

impl<'a> Fields<'a> {
    /// Returns the fields of an event of this kind. `value` returns the value of a field by its
    /// index in [`EventKind::fields`].
    pub(super) fn of_binary(
        kind: EventKind,
        value: impl Fn(usize) -> Option<u64>,
    ) -> Fields<'static> {
        let value = |at| value(at).map_or(Value::Missing, Value::Number);
        Fields { kind, values: std::array::from_fn(value) }
    }

    pub(super) fn of_text(kind: EventKind, text: &'a [u8]) -> Result<Fields<'a>, Cause> {
        let mut read = Fields { kind, values: [Value::Missing; FIELDS_MAX] };
        let names = kind.fields();
        if names.is_empty() {
            return Ok(read);
        }
        if kind == EventKind::WriteMsr {
            read.write_msr(text)?;
            return Ok(read);
        }
        for (key, word) in fields(text) {
            if let Some(at) = names.iter().position(|name| name.as_bytes() == key) {
                read.values[at] = Value::Word(word);
            }
        }
        if read.values.iter().all(|value| matches!(value, Value::Missing)) {
            match kind {
                EventKind::SchedSwitch => read.trace_cmd_switch(text),
                EventKind::SchedWakeup => read.trace_cmd_wakeup(text),
                _ => {}
            }
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, value: Value<'a>) {
        if let Some(at) = self.kind.fields().iter().position(|field| *field == name) {
            self.values[at] = value;
        }
    }

    /// Reads the text of `write_msr`: `6e0, value 63299eb1457`, which ends with ` #GP` if the write
    /// failed.
    fn write_msr(&mut self, text: &[u8]) -> Result<(), Cause> {
        let event = self.kind;
        let missing = Cause::MissingField { event, field: "value" };
        let comma = find(text, b", value ").ok_or(missing)?;
        let value = text[comma + 8..].split(|&byte| byte == b' ').next().unwrap_or_default();
        for (field, word) in [("msr", &text[..comma]), ("val", value)] {
            let unreadable = || Cause::UnreadableField { event, field };
            self.set(field, Value::Number(hex(word).ok_or_else(unreadable)?));
        }
        Ok(())
    }

    /// Reads trace-cmd's own form of a `sched_switch`, `comm:7 [120] S ==> swapper:0 [120]`.
    fn trace_cmd_switch(&mut self, text: &'a [u8]) {
        if let Some(arrow) = find(text, b" ==> ") {
            self.set("next_pid", pid_before_priority(&text[arrow + 5..]));
        }
    }

    /// Reads trace-cmd's own form of a `sched_wakeup`, `comm:7 [120] CPU:000`.
    fn trace_cmd_wakeup(&mut self, text: &'a [u8]) {
        self.set("pid", pid_before_priority(text));
        if let Some(at) = find(text, b" CPU:") {
            self.set("target_cpu", Value::Word(&text[at + 5..]));
        }
    }

    /// Returns whether the timer has a 32-bit address: 8 digits, or at most 8 after `0x`.
    pub(super) fn has_narrow_address(&self) -> bool {
        self.values[0].word().is_some_and(|word| match word.strip_prefix(b"0x") {
            Some(digits) => digits.len() <= 8,
            None => word.len() == 8,
        })
    }

    pub(super) fn event(&self, cpu: CpuId, names: &mut Names) -> Result<Event, Cause> {
        Event::read(&mut Reading { fields: self, cpu, names, next: 0 })
    }
}

pub(super) struct Reading<'a, 'n> {
    fields: &'a Fields<'a>,
    cpu: CpuId,
    names: &'n mut Names,
    next: usize,
}

impl Reading<'_, '_> {
    pub(super) fn kind(&self) -> EventKind {
        self.fields.kind
    }

    /// Reads the next field; `None` if it was not recorded, since only some kernels have it.
    pub(super) fn optional<T: FieldType>(&mut self) -> Result<Option<T>, Cause> {
        self.next += 1;
        self.read(self.next - 1, T::read)
    }

    /// Reads the next field. If it was not recorded, returns the value of its type for "not
    /// recorded" (`FieldType::missing`), or an error if the type has no such value.
    pub(super) fn required<T: FieldType>(&mut self) -> Result<T, Cause> {
        let value = self.optional()?.or_else(|| T::missing(self.cpu));
        value.ok_or_else(|| self.missing(self.next - 1))
    }

    fn read<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(Value<'_>, &mut Names) -> Option<T>,
    ) -> Result<Option<T>, Cause> {
        match self.fields.values[at] {
            Value::Missing => Ok(None),
            value => read(value, self.names).map(Some).ok_or_else(|| Cause::UnreadableField {
                event: self.kind(),
                field: self.kind().fields()[at],
            }),
        }
    }

    fn missing(&self, at: usize) -> Cause {
        Cause::MissingField { event: self.kind(), field: self.kind().fields()[at] }
    }

    /// Reads the jiffies at which a wheel timer was started. Text does not have them, so they are
    /// computed from the expiry and the timeout.
    pub(super) fn jiffies_at_start(&mut self) -> Result<Jiffy, Cause> {
        if let Some(now) = self.optional()? {
            return Ok(now);
        }
        let expires = self.read(EXPIRES, |expires, _| expires.number())?;
        let timeout = self.read(TIMEOUT, |timeout, _| signed(timeout.word()?))?;
        let times = expires.zip(timeout).ok_or_else(|| self.missing(TIMEOUT))?;
        Ok(jiffies_now(times.0, times.1))
    }

    /// Reads the CPU to whose base a wheel timer was added. Binary recordings have it in the lowest
    /// bits of the flags.
    pub(super) fn base_at_start(&mut self) -> Result<CpuId, Cause> {
        let base = self.required()?;
        let raw = self.raw_timer_flags();
        Ok(raw.and_then(|raw| prefix::cpu_id(raw & 0x3_ffff)).unwrap_or(base))
    }

    /// Reads from the flags of a wheel timer (`D|P|I`) whether it is deferrable.
    pub(super) fn is_deferrable(&mut self) -> Result<bool, Cause> {
        // Linux include/linux/timer.h.
        const DEFERRABLE: u64 = 1 << 19;
        self.next += 1;
        let letters = self.fields.values[FLAGS].word().unwrap_or_default();
        Ok(match self.raw_timer_flags() {
            Some(raw) => raw & DEFERRABLE != 0,
            None => letters.split(|&byte| byte == b'|').any(|letter| letter == b"D"),
        })
    }

    /// Returns the number in which the kernel keeps the CPU and the flags of a wheel timer. Binary
    /// recordings have it; older kernels also print it in text (`0x00300001`).
    fn raw_timer_flags(&self) -> Option<u64> {
        match self.fields.values[FLAGS] {
            Value::Number(raw) => Some(raw),
            Value::Word(word) => word.strip_prefix(b"0x").and_then(hex),
            Value::Missing => None,
        }
    }

    /// Reads from the flags of clone(2) whether a new thread belongs to the same process.
    pub(super) fn is_thread(&mut self) -> Result<bool, Cause> {
        const CLONE_THREAD: u64 = 0x1_0000;
        self.next += 1;
        let at = self.next - 1;
        let flags = self.read(at, |flags, _| flags.hex())?.ok_or_else(|| self.missing(at))?;
        Ok(flags & CLONE_THREAD != 0)
    }
}

fn pid_before_priority(text: &[u8]) -> Value<'_> {
    let Some(end) = find(text, b" [") else { return Value::Missing };
    Value::Word(text[..end].rsplit(|&byte| byte == b':').next().unwrap_or_default())
}

/// Returns the jiffies at a timer's start, `expires - timeout`: the kernel prints `timeout =
/// expires - now`. Jiffies of 32 bits wrap five minutes after boot, so an expiry just after the
/// wrap may be smaller than its timeout.
fn jiffies_now(expires: u64, timeout: i64) -> Jiffy {
    let now = expires.wrapping_sub_signed(timeout);
    let wrapped = expires <= u64::from(u32::MAX) && now > u64::from(u32::MAX) && timeout > 0;
    Jiffy(if wrapped { now & u64::from(u32::MAX) } else { now })
}
