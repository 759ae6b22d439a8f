//! An event's bytes as an [`Event`].

use super::format::{Field, Format};
use super::symbols::Symbols;
use crate::read::attributes::{Bucket, ClockId, Context, HrtimerMode, TimerFlags};
use crate::read::event::{Event, EventKind, Jiffy, TimerAddr};
use crate::read::names::{NameId, Names};
use crate::read::payload::is_thread;
use crate::read::prefix;
use std::collections::HashMap;
use tickless_core::time::{CpuId, Ns};

/// Turns a kernel's events into [`Event`]s.
#[derive(Debug)]
pub struct Decoder {
    plans: HashMap<u16, Plan>,
    common: Common,
    symbols: Symbols,
    names: Names,
    functions: HashMap<u64, NameId>,
    unknown: HashMap<u16, Box<str>>,
}

/// The fields that every event has.
#[derive(Clone, Copy, Default, Debug)]
struct Common {
    id: Option<Field>,
    flags: Option<Field>,
    pid: Option<Field>,
}

/// An event, and where the fields are that are read of it, in the order of [`wanted`].
#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: EventKind,
    fields: [Option<Field>; FIELDS_MAX],
}

const FIELDS_MAX: usize = 6;

impl Plan {
    fn optional(self, at: usize, event: &[u8]) -> Option<u64> {
        self.fields[at].and_then(|field| field.read(event))
    }

    fn read(self, at: usize, event: &[u8]) -> Result<u64, &'static str> {
        self.optional(at, event).ok_or_else(|| wanted(self.kind)[at])
    }
}

/// An event, and what the CPU was doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// What happened.
    pub event: Event,
    /// In what the CPU was.
    pub context: Context,
    /// Which thread the CPU was in.
    pub pid: u32,
}

/// Why an event's bytes are no [`Event`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::read) enum Undecoded {
    /// It is one of those that are not read.
    Other(Box<str>),
    /// A field of it is not there.
    Missing(EventKind, &'static str),
    /// Nothing says what it is.
    NoFormat,
}

impl Decoder {
    /// A decoder that knows no events yet.
    pub fn new(symbols: Symbols) -> Decoder {
        Decoder {
            plans: HashMap::new(),
            common: Common::default(),
            symbols,
            names: Names::new(),
            functions: HashMap::new(),
            unknown: HashMap::new(),
        }
    }

    /// Adds what the kernel says of one event. Those that nobody asks for are passed over.
    pub fn add_format(&mut self, text: &str) {
        let Some(format) = Format::parse(text) else { return };
        self.common = Common {
            id: format.field("common_type"),
            flags: format.field("common_flags"),
            pid: format.field("common_pid"),
        };
        let Some(kind) = EventKind::from_name(format.name.as_bytes()) else {
            self.unknown.insert(format.id, format.name.into());
            return;
        };
        let mut fields = [None; FIELDS_MAX];
        for (place, name) in fields.iter_mut().zip(wanted(kind)) {
            *place = format.field(name);
        }
        self.plans.insert(format.id, Plan { kind, fields });
    }

    /// Takes the names of functions from here on.
    pub(in crate::read) fn name_by(&mut self, symbols: Symbols) {
        self.symbols = symbols;
        self.functions.clear();
    }

    /// The names behind the events' [`NameId`]s.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The functions by their addresses.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    pub(in crate::read) fn into_names(self) -> Names {
        self.names
    }

    /// What `event`'s bytes say that happened on `cpu`; none if they cannot be read. O(1).
    pub fn decode(&mut self, event: &[u8], cpu: CpuId) -> Option<Occurrence> {
        self.occurrence(event, cpu).ok()
    }

    pub(in crate::read) fn occurrence(
        &mut self,
        bytes: &[u8],
        cpu: CpuId,
    ) -> Result<Occurrence, Undecoded> {
        let common = |field: Option<Field>| field.and_then(|field| field.read(bytes));
        let id = common(self.common.id).ok_or(Undecoded::NoFormat)? as u16;
        let Some(&plan) = self.plans.get(&id) else {
            let name = self.unknown.get(&id).cloned();
            return Err(name.map_or(Undecoded::NoFormat, Undecoded::Other));
        };
        let context = common(self.common.flags).map_or(Context::NotRecorded, context);
        let pid = common(self.common.pid).unwrap_or(0) as u32;
        let event = self.event(plan, bytes, cpu);
        let event = event.map_err(|field| Undecoded::Missing(plan.kind, field))?;
        Ok(Occurrence { event, context, pid })
    }

    fn event(&mut self, plan: Plan, bytes: &[u8], cpu: CpuId) -> Result<Event, &'static str> {
        let optional = |at: usize| plan.optional(at, bytes);
        let read = |at: usize| plan.read(at, bytes);
        let timer = || read(0).map(TimerAddr);
        Ok(match plan.kind {
            EventKind::TimerInit => Event::TimerInit { timer: timer()? },
            EventKind::TimerStart => {
                let flags = read(4)? as u32;
                let function = self.function(optional(1));
                Event::TimerStart {
                    timer: timer()?,
                    expires: Jiffy(read(2)?),
                    now: Jiffy(read(3)?),
                    function,
                    base: prefix::cpu_id((flags & 0x3_ffff).into()).unwrap_or(cpu),
                    bucket: Bucket::new((flags >> 22).into()).unwrap_or(Bucket::NOT_PRINTED),
                    flags: TimerFlags::of_word(flags.into()),
                }
            }
            EventKind::TimerCancel => Event::TimerCancel { timer: timer()? },
            EventKind::TimerExpireEntry => {
                let now = Jiffy(read(1)?);
                let function = self.function(optional(3));
                let base_clock = optional(2).map_or(now, Jiffy);
                Event::TimerExpireEntry { timer: timer()?, now, base_clock, function }
            }
            EventKind::TimerExpireExit => Event::TimerExpireExit { timer: timer()? },
            EventKind::HrtimerSetup => {
                let mode = optional(2).and_then(HrtimerMode::of_number).unwrap_or_default();
                let clock = ClockId::of_number(read(1)?);
                Event::HrtimerSetup { timer: timer()?, clock, mode }
            }
            EventKind::HrtimerStart => {
                let expires = read(2)?;
                let function = self.function(optional(1));
                Event::HrtimerStart {
                    timer: timer()?,
                    expires: Ns(expires),
                    soft_expires: Ns(optional(3).unwrap_or(expires)),
                    function,
                    mode: optional(4).and_then(HrtimerMode::of_number).unwrap_or_default(),
                    was_armed: optional(5).map(|armed| armed != 0),
                }
            }
            EventKind::HrtimerCancel => Event::HrtimerCancel { timer: timer()? },
            EventKind::HrtimerExpireEntry => {
                let function = self.function(optional(2));
                Event::HrtimerExpireEntry { timer: timer()?, now: Ns(read(1)?), function }
            }
            EventKind::HrtimerExpireExit => Event::HrtimerExpireExit { timer: timer()? },
            EventKind::TimerBaseIdle => {
                let base = optional(1).and_then(prefix::cpu_id).unwrap_or(cpu);
                Event::TimerBaseIdle { is_idle: read(0)? != 0, base }
            }
            EventKind::TickStop => {
                let dependency = self.names.intern(tick_dependency(read(1)?).as_bytes());
                Event::TickStop { success: read(0)? != 0, dependency }
            }
            _ => around(plan, bytes, cpu)?,
        })
    }

    /// The name of a function, looked up once.
    fn function(&mut self, address: Option<u64>) -> NameId {
        let Some(address) = address else { return NameId::UNKNOWN };
        if let Some(&known) = self.functions.get(&address) {
            return known;
        }
        let name = self.symbols.name(address).map_or(NameId::UNKNOWN, |name| {
            // As the text's reader has it.
            self.names.intern(name.as_bytes())
        });
        self.functions.insert(address, name);
        name
    }
}

/// An event that is about what happens around timers.
fn around(plan: Plan, bytes: &[u8], cpu: CpuId) -> Result<Event, &'static str> {
    let number = |at: usize| plan.read(at, bytes).map(|number| number as u32);
    let cpu_or_this = |at: usize| plan.optional(at, bytes).and_then(prefix::cpu_id).unwrap_or(cpu);
    Ok(match plan.kind {
        EventKind::LocalTimerEntry => Event::LocalTimerEntry,
        EventKind::LocalTimerExit => Event::LocalTimerExit,
        EventKind::RescheduleEntry => Event::RescheduleEntry,
        EventKind::RescheduleExit => Event::RescheduleExit,
        EventKind::WriteMsr => {
            Event::WriteMsr { register: number(0)?, value: plan.read(1, bytes)? }
        }
        EventKind::SchedSwitch => Event::SchedSwitch { prev_pid: number(0)?, next_pid: number(1)? },
        EventKind::SchedWakeup => Event::SchedWakeup { pid: number(0)?, target: cpu_or_this(1) },
        EventKind::CpuIdle => Event::CpuIdle { state: number(0)?, cpu: cpu_or_this(1) },
        EventKind::SoftirqEntry => Event::SoftirqEntry { vector: number(0)? },
        EventKind::SoftirqExit => Event::SoftirqExit { vector: number(0)? },
        EventKind::IrqEntry => Event::IrqEntry { irq: number(0)? },
        EventKind::IrqExit => Event::IrqExit { irq: number(0)? },
        EventKind::TaskNew => {
            Event::TaskNew { pid: number(0)?, is_thread: is_thread(plan.read(1, bytes)?) }
        }
        EventKind::ItimerState => Event::ItimerState,
        _ => Event::ItimerExpire,
    })
}

/// The fields that are read of an event, by the kernel's names for them.
fn wanted(kind: EventKind) -> &'static [&'static str] {
    match kind {
        EventKind::TimerInit | EventKind::TimerCancel | EventKind::TimerExpireExit => &["timer"],
        EventKind::TimerStart => &["timer", "function", "expires", "now", "flags"],
        EventKind::TimerExpireEntry => &["timer", "now", "baseclk", "function"],
        EventKind::HrtimerSetup => &["hrtimer", "clockid", "mode"],
        EventKind::HrtimerStart => {
            &["hrtimer", "function", "expires", "softexpires", "mode", "was_armed"]
        }
        EventKind::HrtimerCancel | EventKind::HrtimerExpireExit => &["hrtimer"],
        EventKind::HrtimerExpireEntry => &["hrtimer", "now", "function"],
        EventKind::TimerBaseIdle => &["is_idle", "cpu"],
        EventKind::TickStop => &["success", "dependency"],
        EventKind::WriteMsr => &["msr", "val"],
        EventKind::SchedSwitch => &["prev_pid", "next_pid"],
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

/// What the kernel's flags say of where the CPU was.
fn context(flags: u64) -> Context {
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

/// What forbade stopping the tick, in the kernel's words.
fn tick_dependency(bits: u64) -> String {
    const WORDS: [&str; 6] =
        ["POSIX_TIMER", "PERF_EVENTS", "SCHED", "CLOCK_UNSTABLE", "RCU", "RCU_EXP"];
    match bits {
        0 => "NONE".to_string(),
        _ => match WORDS.get(bits.trailing_zeros() as usize) {
            Some(word) if bits.is_power_of_two() => (*word).to_string(),
            _ => format!("{bits:#x}"),
        },
    }
}
