//! Builds an [`Event`] from its fields, which text has as words and binary recordings as numbers.
//!
//! A field that every kernel records is required. A field that only some kernels record has a value
//! for "not printed". So a line that was cut off is distinguished from one of an older kernel.

use tickless_core::time::{CpuId, Ns};

use super::attributes::{Bucket, ClockId, HrtimerMode, TimerFlags, raw_timer_flags};
use super::event::{Event, EventKind, Jiffy, TimerAddr};
use super::fields::{fields, find, hex, number, signed};
use super::names::{NameId, Names};
use super::prefix;
use super::problem::Cause;

/// A field of an event, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// The field is not there.
    Missing,
    /// A word of text.
    Word(&'a [u8]),
    /// A number of a binary recording.
    Number(u64),
}

impl<'a> Value<'a> {
    pub(super) fn word(self) -> Option<&'a [u8]> {
        match self {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns a number; a word is decimal, or hexadecimal with `0x`.
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Value::Missing => None,
            Value::Word(word) => number(word),
            Value::Number(number) => Some(number),
        }
    }

    /// Returns a number; a word is hexadecimal, with or without `0x`.
    fn hex(self) -> Option<u64> {
        match self {
            Value::Word(word) => hex(word.strip_prefix(b"0x").unwrap_or(word)),
            other => other.number(),
        }
    }

    /// Returns a number of 32 bits. Binary recordings extend the sign of smaller fields.
    fn small(self) -> Option<u32> {
        match self {
            Value::Number(number) => Some(number as u32),
            other => other.number().and_then(|number| u32::try_from(number).ok()),
        }
    }

    fn cpu(self) -> Option<CpuId> {
        self.number().and_then(prefix::cpu_id)
    }
}

/// The largest number of fields that are read of an event.
const FIELDS_MAX: usize = 8;

/// The values of the fields that [`wanted`] names, in that order.
pub(super) struct Fields<'a> {
    kind: EventKind,
    values: [Value<'a>; FIELDS_MAX],
}

/// A field by its name in the kernel, for messages.
#[derive(Clone, Copy)]
struct Field<'a> {
    kind: EventKind,
    name: &'static str,
    value: Value<'a>,
}

impl<'a> Field<'a> {
    fn required<T>(self, read: impl FnOnce(Value<'a>) -> Option<T>) -> Result<T, Cause> {
        let missing = Cause::MissingField { event: self.kind, field: self.name };
        self.optional(read).and_then(|value| value.ok_or(missing))
    }

    fn optional<T>(self, read: impl FnOnce(Value<'a>) -> Option<T>) -> Result<Option<T>, Cause> {
        let Field { kind, name, value } = self;
        if let Value::Missing = value {
            return Ok(None);
        }
        let unreadable = || Cause::UnreadableField { event: kind, field: name };
        read(value).map(Some).ok_or_else(unreadable)
    }

    fn number(self) -> Result<u64, Cause> {
        self.required(Value::number)
    }

    fn small(self) -> Result<u32, Cause> {
        self.required(Value::small)
    }

    /// Early in boot, kernels print `(____ptrval____)` for every address, which is unreadable.
    fn timer(self) -> Result<TimerAddr, Cause> {
        self.required(Value::hex).map(TimerAddr)
    }
}

/// Returns the fields that are read of an event, by the kernel's names for them.
pub(super) fn wanted(kind: EventKind) -> &'static [&'static str] {
    match kind {
        EventKind::TimerInit | EventKind::TimerCancel | EventKind::TimerExpireExit => &["timer"],
        // Text has `timeout`, `cpu` and `idx`; binary recordings have `now`, and both of the
        // latter in `flags`.
        EventKind::TimerStart => {
            &["timer", "expires", "timeout", "now", "function", "cpu", "idx", "flags"]
        }
        EventKind::TimerExpireEntry => &["timer", "now", "baseclk", "function"],
        EventKind::HrtimerSetup => &["hrtimer", "clockid", "mode"],
        EventKind::HrtimerStart => {
            &["hrtimer", "expires", "softexpires", "function", "mode", "was_armed"]
        }
        EventKind::HrtimerCancel | EventKind::HrtimerExpireExit => &["hrtimer"],
        EventKind::HrtimerExpireEntry => &["hrtimer", "now", "function"],
        EventKind::TimerBaseIdle => &["is_idle", "cpu"],
        EventKind::TickStop => &["success", "dependency"],
        EventKind::WriteMsr => &["msr", "val"],
        EventKind::SchedSwitch => &["next_pid"],
        EventKind::SchedWakeup => &["pid", "target_cpu"],
        EventKind::CpuIdle => &["state", "cpu_id"],
        EventKind::SoftirqEntry | EventKind::SoftirqExit => &["vec"],
        EventKind::IrqEntry | EventKind::IrqExit => &["irq"],
        EventKind::TaskNew => &["pid", "clone_flags"],
        EventKind::LocalTimerEntry
        | EventKind::LocalTimerExit
        | EventKind::RescheduleEntry
        | EventKind::RescheduleExit
        | EventKind::ItimerState
        | EventKind::ItimerExpire => &[],
    }
}

impl<'a> Fields<'a> {
    /// Returns the fields of `kind` whose values `value` returns by their places in [`wanted`].
    pub(super) fn of_binary(
        kind: EventKind,
        value: impl Fn(usize) -> Option<u64>,
    ) -> Fields<'static> {
        let value = |at| value(at).map_or(Value::Missing, Value::Number);
        Fields { kind, values: std::array::from_fn(value) }
    }

    /// Reads an event's own text (`timer=... expires=...`).
    pub(super) fn of_text(kind: EventKind, text: &'a [u8]) -> Result<Fields<'a>, Cause> {
        let mut read = Fields { kind, values: [Value::Missing; FIELDS_MAX] };
        let names = wanted(kind);
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
        if let Value::Missing = read.values[0] {
            match kind {
                EventKind::SchedSwitch => read.trace_cmd_switch(text),
                EventKind::SchedWakeup => read.trace_cmd_wakeup(text),
                _ => {}
            }
        }
        Ok(read)
    }

    /// Reads `6e0, value 63299eb1457`, which ends with ` #GP` if the write failed.
    fn write_msr(&mut self, text: &[u8]) -> Result<(), Cause> {
        let event = self.kind;
        let missing = Cause::MissingField { event, field: "value" };
        let comma = find(text, b", value ").ok_or(missing)?;
        let value = text[comma + 8..].split(|&byte| byte == b' ').next().unwrap_or_default();
        for (at, word) in [&text[..comma], value].into_iter().enumerate() {
            let unreadable = || Cause::UnreadableField { event, field: wanted(event)[at] };
            self.values[at] = Value::Number(hex(word).ok_or_else(unreadable)?);
        }
        Ok(())
    }

    /// Reads trace-cmd's own form of a switch, `comm:7 [120] S ==> swapper:0 [120]`.
    fn trace_cmd_switch(&mut self, text: &'a [u8]) {
        if let Some(arrow) = find(text, b" ==> ") {
            self.values[0] = pid_before_priority(&text[arrow + 5..]);
        }
    }

    /// Reads trace-cmd's own form of a wakeup, `comm:7 [120] CPU:000`.
    fn trace_cmd_wakeup(&mut self, text: &'a [u8]) {
        self.values[0] = pid_before_priority(text);
        if let Some(at) = find(text, b" CPU:") {
            self.values[1] = Value::Word(&text[at + 5..]);
        }
    }

    /// Returns whether the timer has a 32-bit address: 8 digits, or at most 8 after `0x`.
    pub(super) fn has_narrow_address(&self) -> bool {
        self.values[0].word().is_some_and(|word| match word.strip_prefix(b"0x") {
            Some(digits) => digits.len() <= 8,
            None => word.len() == 8,
        })
    }

    fn first<const N: usize>(&self) -> [Field<'a>; N] {
        let (kind, names) = (self.kind, wanted(self.kind));
        std::array::from_fn(|at| Field { kind, name: names[at], value: self.values[at] })
    }

    /// Builds the event, which occurred on `cpu`.
    pub(super) fn event(&self, cpu: CpuId, names: &mut Names) -> Result<Event, Cause> {
        Ok(match self.kind {
            EventKind::TimerStart => self.timer_start(cpu, names)?,
            EventKind::TimerInit => Event::TimerInit { timer: self.timer()? },
            EventKind::TimerCancel => Event::TimerCancel { timer: self.timer()? },
            EventKind::TimerExpireEntry => {
                let [timer, now, base_clock, function] = self.first();
                let (timer, now) = (timer.timer()?, Jiffy(now.number()?));
                let base_clock = base_clock.optional(Value::number)?.map_or(now, Jiffy);
                let function = names.function(function.value);
                Event::TimerExpireEntry { timer, now, base_clock, function }
            }
            EventKind::TimerExpireExit => Event::TimerExpireExit { timer: self.timer()? },
            EventKind::HrtimerSetup => {
                let [timer, clock, mode] = self.first();
                let clock = clock.required(|clock| Some(ClockId::of(clock)))?;
                let mode = mode.optional(HrtimerMode::of)?.unwrap_or_default();
                Event::HrtimerSetup { timer: timer.timer()?, clock, mode }
            }
            EventKind::HrtimerStart => {
                let [timer, expires, soft_expires, function, mode, was_armed] = self.first();
                let expires = Ns(expires.number()?);
                Event::HrtimerStart {
                    timer: timer.timer()?,
                    expires,
                    soft_expires: soft_expires.optional(Value::number)?.map_or(expires, Ns),
                    function: names.function(function.value),
                    mode: mode.optional(HrtimerMode::of)?.unwrap_or_default(),
                    was_armed: was_armed.optional(Value::number)?.map(|armed| armed != 0),
                }
            }
            EventKind::HrtimerCancel => Event::HrtimerCancel { timer: self.timer()? },
            EventKind::HrtimerExpireEntry => {
                let [timer, now, function] = self.first();
                let (timer, now) = (timer.timer()?, Ns(now.number()?));
                Event::HrtimerExpireEntry { timer, now, function: names.function(function.value) }
            }
            EventKind::HrtimerExpireExit => Event::HrtimerExpireExit { timer: self.timer()? },
            EventKind::TickStop => {
                let [success, dependency] = self.first();
                let success = success.number()? != 0;
                let dependency = match dependency.value {
                    Value::Missing => NameId::UNKNOWN,
                    Value::Word(word) => names.intern(word),
                    Value::Number(bits) => names.intern(tick_dependency(bits).as_bytes()),
                };
                Event::TickStop { success, dependency }
            }
            _ => self.other_event(cpu)?,
        })
    }

    fn timer(&self) -> Result<TimerAddr, Cause> {
        let [timer] = self.first();
        timer.timer()
    }

    fn timer_start(&self, cpu: CpuId, names: &mut Names) -> Result<Event, Cause> {
        let [timer, expires, timeout, now, function, base, bucket, flags] = self.first();
        let expires = expires.number()?;
        let now = match now.optional(Value::number)? {
            Some(now) => Jiffy(now),
            None => jiffies_now(expires, timeout.required(|timeout| signed(timeout.word()?))?),
        };
        let raw = raw_timer_flags(flags.value);
        let bucket = match flags.value {
            Value::Number(raw) => Bucket::new((raw as u32 >> 22).into()),
            _ => bucket.optional(|bucket| Bucket::new(bucket.number()?))?,
        };
        let base = base.optional(Value::cpu)?.unwrap_or(cpu);
        Ok(Event::TimerStart {
            timer: timer.timer()?,
            expires: Jiffy(expires),
            now,
            function: names.function(function.value),
            base: raw.and_then(|raw| prefix::cpu_id(raw & 0x3_ffff)).unwrap_or(base),
            bucket: bucket.unwrap_or(Bucket::NOT_PRINTED),
            flags: flags.optional(TimerFlags::of)?.unwrap_or_default(),
        })
    }

    /// Builds an event that concerns no timer.
    fn other_event(&self, cpu: CpuId) -> Result<Event, Cause> {
        let one = || self.first::<1>()[0];
        Ok(match self.kind {
            EventKind::TimerBaseIdle => {
                let [is_idle, base] = self.first();
                let base = base.optional(Value::cpu)?.unwrap_or(cpu);
                Event::TimerBaseIdle { is_idle: is_idle.number()? != 0, base }
            }
            EventKind::LocalTimerEntry => Event::LocalTimerEntry,
            EventKind::LocalTimerExit => Event::LocalTimerExit,
            EventKind::RescheduleEntry => Event::RescheduleEntry,
            EventKind::RescheduleExit => Event::RescheduleExit,
            EventKind::WriteMsr => {
                let [register, value] = self.first();
                Event::WriteMsr { register: register.small()?, value: value.number()? }
            }
            EventKind::SchedSwitch => Event::SchedSwitch { next_pid: one().small()? },
            EventKind::SchedWakeup => {
                let [pid, target] = self.first();
                let target = target.optional(Value::cpu)?.unwrap_or(cpu);
                Event::SchedWakeup { pid: pid.small()?, target }
            }
            EventKind::CpuIdle => {
                // The kernel prints -1 as 32 bits when the CPU leaves idle.
                const EXIT: u32 = u32::MAX;
                let [state, idle_cpu] = self.first();
                let cpu = idle_cpu.optional(Value::cpu)?.unwrap_or(cpu);
                Event::CpuIdle { state: Some(state.small()?).filter(|state| *state != EXIT), cpu }
            }
            EventKind::SoftirqEntry => Event::SoftirqEntry { vector: one().small()? },
            EventKind::SoftirqExit => Event::SoftirqExit { vector: one().small()? },
            EventKind::IrqEntry => Event::IrqEntry { irq: one().small()? },
            EventKind::IrqExit => Event::IrqExit { irq: one().small()? },
            EventKind::TaskNew => {
                const CLONE_THREAD: u64 = 0x1_0000;
                let [pid, flags] = self.first();
                let is_thread = flags.required(Value::hex)? & CLONE_THREAD != 0;
                Event::TaskNew { pid: pid.small()?, is_thread }
            }
            EventKind::ItimerState => Event::ItimerState,
            _ => Event::ItimerExpire,
        })
    }
}

fn pid_before_priority(text: &[u8]) -> Value<'_> {
    let Some(end) = find(text, b" [") else { return Value::Missing };
    Value::Word(text[..end].rsplit(|&byte| byte == b':').next().unwrap_or_default())
}

/// Undoes what the kernel prints as `timeout = expires - now`. Jiffies of 32 bits wrap five minutes
/// after boot, so an expiry just behind the wrap may be smaller than its timeout.
fn jiffies_now(expires: u64, timeout: i64) -> Jiffy {
    let now = expires.wrapping_sub_signed(timeout);
    let wrapped = expires <= u64::from(u32::MAX) && now > u64::from(u32::MAX) && timeout > 0;
    Jiffy(if wrapped { now & u64::from(u32::MAX) } else { now })
}

/// Returns the kernel's word for what prevented stopping the tick.
fn tick_dependency(bits: u64) -> String {
    const WORDS: [&str; 6] =
        ["POSIX_TIMER", "PERF_EVENTS", "SCHED", "CLOCK_UNSTABLE", "RCU", "RCU_EXP"];
    match (bits, WORDS.get(bits.trailing_zeros() as usize)) {
        (0, _) => "NONE".to_string(),
        (_, Some(word)) if bits.is_power_of_two() => (*word).to_string(),
        _ => format!("{bits:#x}"),
    }
}
