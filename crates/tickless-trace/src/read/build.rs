//! Builds an [`Event`](super::Event) from the printed values of its fields.
//!
//! A field that every kernel prints is required. A field that only some kernels print has a value
//! for "not printed". This distinguishes a line that was cut off, which is an error, from a line of
//! an older kernel.

use tickless_core::time::CpuId;

use super::event::{EventKind, Jiffy};
use super::fields::{fields, find, hex, number, signed};
use super::names::Names;
use super::prefix;
use super::problem::Cause;
use super::value::FieldType;

/// The largest number of fields that are read of an event.
const FIELDS_MAX: usize = 7;

/// The printed values of an event's fields, which are read one after the other.
pub(super) struct Reading<'a, 'n> {
    kind: EventKind,
    values: [Option<&'a [u8]>; FIELDS_MAX],
    cpu: CpuId,
    names: &'n mut Names,
    next: usize,
}

/// The indices of the fields of [`EventKind::TimerStart`] from which other fields are computed.
const EXPIRES: usize = 1;
const FLAGS: usize = 5;
const TIMEOUT: usize = 6;

impl<'a, 'n> Reading<'a, 'n> {
    /// Finds the values of an event's fields in its text. Some events have a form without names.
    pub(super) fn of_text(
        kind: EventKind,
        text: &'a [u8],
        cpu: CpuId,
        names: &'n mut Names,
    ) -> Result<Reading<'a, 'n>, Cause> {
        let mut read = Reading { kind, values: [None; FIELDS_MAX], cpu, names, next: 0 };
        let known = kind.fields();
        if known.is_empty() {
            return Ok(read);
        }
        if kind == EventKind::WriteMsr {
            read.write_msr(text)?;
            return Ok(read);
        }
        for (key, word) in fields(text) {
            if let Some(at) = known.iter().position(|name| name.as_bytes() == key) {
                read.values[at] = Some(word);
            }
        }
        if read.values.iter().all(Option::is_none) {
            match kind {
                EventKind::SchedSwitch => read.trace_cmd_switch(text),
                EventKind::SchedWakeup => read.trace_cmd_wakeup(text),
                _ => {}
            }
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, value: Option<&'a [u8]>) {
        if let Some(at) = self.kind.fields().iter().position(|field| *field == name) {
            self.values[at] = value;
        }
    }

    /// Reads the text of `write_msr`: `6e0, value 63299eb1457`, with ` #GP` if the write failed.
    fn write_msr(&mut self, text: &'a [u8]) -> Result<(), Cause> {
        let missing = Cause::MissingField { event: self.kind, field: "value" };
        let comma = find(text, b", value ").ok_or(missing)?;
        self.set("msr", Some(&text[..comma]));
        self.set("val", text[comma + 8..].split(|&byte| byte == b' ').next());
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
            self.set("target_cpu", Some(&text[at + 5..]));
        }
    }

    pub(super) fn kind(&self) -> EventKind {
        self.kind
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

    /// Reads the field at a place by `read`. `None` if the event does not have the field.
    fn read<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&[u8], &mut Names) -> Option<T>,
    ) -> Result<Option<T>, Cause> {
        let Some(word) = self.values[at] else { return Ok(None) };
        let (event, field) = (self.kind(), self.kind().fields()[at]);
        read(word, self.names).map(Some).ok_or(Cause::UnreadableField { event, field })
    }

    fn missing(&self, at: usize) -> Cause {
        Cause::MissingField { event: self.kind(), field: self.kind().fields()[at] }
    }

    /// Computes the jiffies at which a wheel timer was started from the expiry and the timeout.
    pub(super) fn jiffies_at_start(&mut self) -> Result<Jiffy, Cause> {
        self.next += 1;
        let expires = self.read(EXPIRES, |expires, _| number(expires))?;
        let timeout = self.read(TIMEOUT, |timeout, _| signed(timeout))?;
        let times = expires.zip(timeout).ok_or_else(|| self.missing(TIMEOUT))?;
        Ok(jiffies_now(times.0, times.1))
    }

    /// Reads a hexadecimal number without prefix.
    pub(super) fn hex(&mut self) -> Result<u64, Cause> {
        self.next += 1;
        let at = self.next - 1;
        self.read(at, |word, _| hex(word))?.ok_or_else(|| self.missing(at))
    }

    pub(super) fn small_hex(&mut self) -> Result<u32, Cause> {
        let unreadable = Cause::UnreadableField { event: self.kind(), field: "msr" };
        u32::try_from(self.hex()?).map_err(|_| unreadable)
    }

    /// Reads the CPU to whose base a wheel timer was added. Older kernels print it only in the
    /// lowest bits of the flags.
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
        let letters = self.values[FLAGS].unwrap_or_default();
        Ok(match self.raw_timer_flags() {
            Some(raw) => raw & DEFERRABLE != 0,
            None => letters.split(|&byte| byte == b'|').any(|letter| letter == b"D"),
        })
    }

    /// Returns the number in which the kernel keeps the CPU and the flags of a wheel timer. Older
    /// kernels print it (`0x00300001`).
    fn raw_timer_flags(&self) -> Option<u64> {
        self.values[FLAGS]?.strip_prefix(b"0x").and_then(hex)
    }
}

fn pid_before_priority(text: &[u8]) -> Option<&[u8]> {
    let end = find(text, b" [")?;
    text[..end].rsplit(|&byte| byte == b':').next()
}

/// Returns the jiffies at a timer's start, `expires - timeout`: the kernel prints `timeout =
/// expires - now`. Jiffies of 32 bits wrap five minutes after boot, so an expiry just after the
/// wrap may be smaller than its timeout.
fn jiffies_now(expires: u64, timeout: i64) -> Jiffy {
    let now = expires.wrapping_sub_signed(timeout);
    let wrapped = expires <= u64::from(u32::MAX) && now > u64::from(u32::MAX) && timeout > 0;
    Jiffy(if wrapped { now & u64::from(u32::MAX) } else { now })
}
