//! Reads an event's own text (`timer=... expires=...`) into an [`Event`].
//!
//! A field that every kernel prints is required; one that only some print has a "not
//! printed" value. So a line that was cut off is told from one of an older kernel.

use tickless_core::time::{CpuId, Ns};

use super::attributes::{Bucket, ClockId, HrtimerMode, TimerFlags, raw_flags_cpu};
use super::event::{Event, EventKind, Jiffy, TimerAddr};
use super::fields::{decimal, fields, find, hex, signed};
use super::names::{NameId, Names};
use super::prefix;

/// Which field kept an event from being read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BadText {
    /// It is not there.
    Missing(&'static str),
    /// It is there and cannot be read.
    Unreadable(&'static str),
}

/// Reads `text` as an event of `kind` on `cpu`.
pub(super) fn event(
    kind: EventKind,
    text: &[u8],
    cpu: CpuId,
    names: &mut Names,
) -> Result<Event, BadText> {
    Ok(match kind {
        EventKind::TimerStart => timer_start(text, cpu, names)?,
        EventKind::TimerInit => Event::TimerInit { timer: timer(text)? },
        EventKind::TimerCancel => Event::TimerCancel { timer: timer(text)? },
        EventKind::TimerExpireEntry => timer_expire_entry(text, names)?,
        EventKind::TimerExpireExit => Event::TimerExpireExit { timer: timer(text)? },
        EventKind::HrtimerSetup => hrtimer_setup(text)?,
        EventKind::HrtimerStart => hrtimer_start(text, names)?,
        EventKind::HrtimerCancel => Event::HrtimerCancel { timer: timer(text)? },
        EventKind::HrtimerExpireEntry => hrtimer_expire_entry(text, names)?,
        EventKind::HrtimerExpireExit => Event::HrtimerExpireExit { timer: timer(text)? },
        EventKind::TimerBaseIdle => timer_base_idle(text, cpu)?,
        EventKind::TickStop => tick_stop(text, names)?,
        EventKind::LocalTimerEntry => Event::LocalTimerEntry,
        EventKind::LocalTimerExit => Event::LocalTimerExit,
        EventKind::RescheduleEntry => Event::RescheduleEntry,
        EventKind::RescheduleExit => Event::RescheduleExit,
        EventKind::WriteMsr => write_msr(text)?,
        EventKind::SchedSwitch => sched_switch(text)?,
        EventKind::SchedWakeup => sched_wakeup(text, cpu)?,
        EventKind::CpuIdle => cpu_idle(text, cpu)?,
        EventKind::SoftirqEntry => Event::SoftirqEntry { vector: small("vec", text)? },
        EventKind::SoftirqExit => Event::SoftirqExit { vector: small("vec", text)? },
        EventKind::IrqEntry => Event::IrqEntry { irq: small("irq", text)? },
        EventKind::IrqExit => Event::IrqExit { irq: small("irq", text)? },
        EventKind::TaskNew => {
            let flags = read("clone_flags", hex(word("clone_flags", text)?))?;
            Event::TaskNew { pid: small("pid", text)?, is_thread: is_thread(flags) }
        }
        EventKind::ItimerState => Event::ItimerState,
        EventKind::ItimerExpire => Event::ItimerExpire,
    })
}

/// Whether the text's timer has a 32-bit address: 8 digits, or no more than 8 after `0x`.
pub(super) fn has_narrow_address(text: &[u8]) -> bool {
    let is_address = |key: &[u8]| matches!(key, b"timer" | b"hrtimer");
    fields(text).find(|(key, _)| is_address(key)).is_some_and(|(_, word)| {
        match word.strip_prefix(b"0x") {
            Some(digits) => digits.len() <= 8,
            None => word.len() == 8,
        }
    })
}

fn timer_start(text: &[u8], cpu: CpuId, names: &mut Names) -> Result<Event, BadText> {
    let (mut timer, mut expires, mut timeout) = (None, None, None);
    let (mut function, mut base) = (NameId::UNKNOWN, cpu);
    let (mut bucket, mut flags) = (Bucket::NOT_PRINTED, TimerFlags::default());
    for (key, word) in fields(text) {
        match key {
            b"timer" => timer = Some(address(word)?),
            b"function" => function = callback(word, names),
            b"expires" => expires = Some(read("expires", decimal(word))?),
            b"timeout" => timeout = Some(read("timeout", signed(word))?),
            b"cpu" => base = cpu_id("cpu", word)?,
            b"idx" => bucket = read("idx", decimal(word).and_then(Bucket::new))?,
            b"flags" => {
                flags = read("flags", TimerFlags::parse(word))?;
                base = raw_flags_cpu(word).and_then(prefix::cpu_id).unwrap_or(base);
            }
            _ => {}
        }
    }
    let expires = required("expires", expires)?;
    let now = jiffies_now(expires, required("timeout", timeout)?);
    let timer = required("timer", timer)?;
    Ok(Event::TimerStart { timer, expires: Jiffy(expires), now, function, base, bucket, flags })
}

/// The kernel prints `timeout = expires - now`; this undoes it. Where jiffies are 32 bits
/// wide they wrap five minutes after boot, so an expiry just behind the wrap may be smaller
/// than the timeout that leads to it.
fn jiffies_now(expires: u64, timeout: i64) -> Jiffy {
    let now = expires.wrapping_sub_signed(timeout);
    let wrapped = expires <= u64::from(u32::MAX) && now > u64::from(u32::MAX) && timeout > 0;
    Jiffy(if wrapped { now & u64::from(u32::MAX) } else { now })
}

fn timer_expire_entry(text: &[u8], names: &mut Names) -> Result<Event, BadText> {
    let (mut timer, mut now, mut base_clock) = (None, None, None);
    let mut function = NameId::UNKNOWN;
    for (key, word) in fields(text) {
        match key {
            b"timer" => timer = Some(address(word)?),
            b"function" => function = callback(word, names),
            b"now" => now = Some(read("now", decimal(word))?),
            b"baseclk" => base_clock = Some(read("baseclk", decimal(word))?),
            _ => {}
        }
    }
    let (timer, now) = (required("timer", timer)?, required("now", now)?);
    let base_clock = Jiffy(base_clock.unwrap_or(now));
    Ok(Event::TimerExpireEntry { timer, now: Jiffy(now), base_clock, function })
}

fn hrtimer_setup(text: &[u8]) -> Result<Event, BadText> {
    let (mut timer, mut clock, mut mode) = (None, None, HrtimerMode::default());
    for (key, word) in fields(text) {
        match key {
            b"hrtimer" => timer = Some(address(word)?),
            b"clockid" => clock = Some(ClockId::parse(word)),
            b"mode" => mode = read("mode", HrtimerMode::parse(word))?,
            _ => {}
        }
    }
    let timer = required("hrtimer", timer)?;
    Ok(Event::HrtimerSetup { timer, clock: required("clockid", clock)?, mode })
}

fn hrtimer_start(text: &[u8], names: &mut Names) -> Result<Event, BadText> {
    let (mut timer, mut expires, mut soft_expires) = (None, None, None);
    let (mut function, mut mode) = (NameId::UNKNOWN, HrtimerMode::default());
    let mut was_armed = None;
    for (key, word) in fields(text) {
        match key {
            b"hrtimer" => timer = Some(address(word)?),
            b"function" => function = callback(word, names),
            b"expires" => expires = Some(read("expires", decimal(word))?),
            b"softexpires" => soft_expires = Some(read("softexpires", decimal(word))?),
            b"mode" => mode = read("mode", HrtimerMode::parse(word))?,
            b"was_armed" => was_armed = Some(read("was_armed", decimal(word))? != 0),
            _ => {}
        }
    }
    let timer = required("hrtimer", timer)?;
    let expires = required("expires", expires)?;
    let soft_expires = Ns(soft_expires.unwrap_or(expires));
    let expires = Ns(expires);
    Ok(Event::HrtimerStart { timer, expires, soft_expires, function, mode, was_armed })
}

fn hrtimer_expire_entry(text: &[u8], names: &mut Names) -> Result<Event, BadText> {
    let (mut timer, mut now, mut function) = (None, None, NameId::UNKNOWN);
    for (key, word) in fields(text) {
        match key {
            b"hrtimer" => timer = Some(address(word)?),
            b"function" => function = callback(word, names),
            b"now" => now = Some(read("now", decimal(word))?),
            _ => {}
        }
    }
    let (timer, now) = (required("hrtimer", timer)?, Ns(required("now", now)?));
    Ok(Event::HrtimerExpireEntry { timer, now, function })
}

fn timer_base_idle(text: &[u8], cpu: CpuId) -> Result<Event, BadText> {
    let is_idle = read("is_idle", decimal(word("is_idle", text)?))? != 0;
    let base = word("cpu", text).map_or(Ok(cpu), |word| cpu_id("cpu", word))?;
    Ok(Event::TimerBaseIdle { is_idle, base })
}

fn tick_stop(text: &[u8], names: &mut Names) -> Result<Event, BadText> {
    let success = read("success", decimal(word("success", text)?))? != 0;
    let dependency = word("dependency", text).map_or(NameId::UNKNOWN, |word| names.intern(word));
    Ok(Event::TickStop { success, dependency })
}

/// `6e0, value 63299eb1457`, with ` #GP` behind it if the write failed.
fn write_msr(text: &[u8]) -> Result<Event, BadText> {
    let comma = find(text, b", value ").ok_or(BadText::Missing("value"))?;
    let register = hex(&text[..comma]).and_then(|register| u32::try_from(register).ok());
    let value = text[comma + 8..].split(|&byte| byte == b' ').next().and_then(hex);
    Ok(Event::WriteMsr { register: read("register", register)?, value: read("value", value)? })
}

/// Whether what is made with these flags of clone(2) is a thread of the same process.
pub(super) fn is_thread(clone_flags: u64) -> bool {
    const CLONE_THREAD: u64 = 0x1_0000;
    clone_flags & CLONE_THREAD != 0
}

/// A number that fits 32 bits.
fn small(field: &'static str, text: &[u8]) -> Result<u32, BadText> {
    read(field, decimal(word(field, text)?).and_then(|number| u32::try_from(number).ok()))
}

/// The kernel's `prev_pid=7 ... ==> ... next_pid=0`, or trace-cmd's
/// `comm:7 [120] S ==> swapper:0 [120]`.
fn sched_switch(text: &[u8]) -> Result<Event, BadText> {
    if let (Ok(prev), Ok(next)) = (word("prev_pid", text), word("next_pid", text)) {
        let (prev_pid, next_pid) = (pid("prev_pid", prev)?, pid("next_pid", next)?);
        return Ok(Event::SchedSwitch { prev_pid, next_pid });
    }
    let arrow = find(text, b" ==> ").ok_or(BadText::Missing("next_pid"))?;
    let prev_pid = pid_before_priority("prev_pid", &text[..arrow])?;
    let next_pid = pid_before_priority("next_pid", &text[arrow + 5..])?;
    Ok(Event::SchedSwitch { prev_pid, next_pid })
}

/// The kernel's `pid=7 ... target_cpu=000`, or trace-cmd's `comm:7 [120] CPU:000`.
fn sched_wakeup(text: &[u8], cpu: CpuId) -> Result<Event, BadText> {
    if let Ok(woken) = word("pid", text) {
        let pid = pid("pid", woken)?;
        let target = word("target_cpu", text);
        let target = target.map_or(Ok(cpu), |word| cpu_id("target_cpu", word))?;
        return Ok(Event::SchedWakeup { pid, target });
    }
    let pid = pid_before_priority("pid", text)?;
    let target = match find(text, b" CPU:") {
        Some(at) => cpu_id("target_cpu", &text[at + 5..])?,
        None => cpu,
    };
    Ok(Event::SchedWakeup { pid, target })
}

fn cpu_idle(text: &[u8], cpu: CpuId) -> Result<Event, BadText> {
    let state = decimal(word("state", text)?).and_then(|state| u32::try_from(state).ok());
    let cpu = word("cpu_id", text).map_or(Ok(cpu), |word| cpu_id("cpu_id", word))?;
    Ok(Event::CpuIdle { state: read("state", state)?, cpu })
}

/// The timer of an event that prints nothing else of interest.
fn timer(text: &[u8]) -> Result<TimerAddr, BadText> {
    let is_address = |key: &[u8]| matches!(key, b"timer" | b"hrtimer");
    let found = fields(text).find(|(key, _)| is_address(key));
    address(found.ok_or(BadText::Missing("timer"))?.1)
}

/// Hashed or not, with `0x` or without, 32 or 64 bits wide. Early in boot the kernel prints
/// `(____ptrval____)` for every address: that names nothing.
fn address(word: &[u8]) -> Result<TimerAddr, BadText> {
    read("timer", hex(word.strip_prefix(b"0x").unwrap_or(word))).map(TimerAddr)
}

/// A callback's name: trace-cmd prints `tick_nohz_handler/0x0`, `%pS` prints `name+0x0/0x90`.
fn callback(word: &[u8], names: &mut Names) -> NameId {
    let end = word.iter().position(|byte| matches!(byte, b'/' | b'+')).unwrap_or(word.len());
    if end == 0 { NameId::UNKNOWN } else { names.intern(&word[..end]) }
}

fn pid_before_priority(field: &'static str, text: &[u8]) -> Result<u32, BadText> {
    let end = find(text, b" [").ok_or(BadText::Missing(field))?;
    pid(field, text[..end].rsplit(|&byte| byte == b':').next().unwrap_or_default())
}

fn pid(field: &'static str, word: &[u8]) -> Result<u32, BadText> {
    read(field, decimal(word).and_then(|pid| u32::try_from(pid).ok()))
}

fn cpu_id(field: &'static str, word: &[u8]) -> Result<CpuId, BadText> {
    read(field, decimal(word).and_then(prefix::cpu_id))
}

fn word<'a>(field: &'static str, text: &'a [u8]) -> Result<&'a [u8], BadText> {
    let found = fields(text).find(|(key, _)| *key == field.as_bytes());
    found.map(|(_, word)| word).ok_or(BadText::Missing(field))
}

fn read<T>(field: &'static str, value: Option<T>) -> Result<T, BadText> {
    value.ok_or(BadText::Unreadable(field))
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, BadText> {
    value.ok_or(BadText::Missing(field))
}
