//! The events of a kernel timer trace.
//!
//! One table, [`Event`]'s declaration with the macro `events!`, has the kernel's names for every
//! event and its fields. The macro derives from it the code that reads an event.
//!
//! - An event holds what the kernel recorded, in the kernel's units: jiffies for the wheel
//!   (`timer_*`), nanoseconds for the queue (`hrtimer_*`). [`super::JiffyClock`] and
//!   [`super::Trace::monotonic_ahead_ns`] convert them.
//! - Names, such as those of callbacks, are stored once in [`super::Names`], and events hold their
//!   ids.

use tickless_core::time::{CpuId, Ns};

use super::attributes::{ClockId, HrtimerMode};
use super::build::Reading;
use super::names::NameId;
use super::problem::Cause;

/// A timer's address as printed. It only identifies the timer: kernels hash addresses, and use
/// them again once a timer is freed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TimerAddr(pub u64);

/// A value of the kernel's tick counter. [`super::JiffyClock`] converts it to a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Jiffy(pub u64);

/// The register that programs a CPU's timer interrupt: IA32_TSC_DEADLINE.
pub const TSC_DEADLINE_REGISTER: u32 = 0x6e0;

/// The time for which a device is programmed that is shut down: the kernel's KTIME_MAX.
pub const DEVICE_OFF: Ns = Ns(i64::MAX as u64);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Coarse timers (`timer_*`, in jiffies), in a wheel of buckets.
    Wheel,
    /// High-resolution timers (`hrtimer_*`, in nanoseconds), in an ordered queue.
    Queue,
}

/// Reads a field of an event. For a field that only some kernels record, `or` names an earlier
/// field, whose value is used if the field is not recorded. `by` names a method that reads the
/// field.
macro_rules! read_field {
    ($reading:ident $name:literal) => {
        $reading.required($name)?
    };
    ($reading:ident $name:literal or $earlier:ident) => {
        $reading.optional($name)?.unwrap_or($earlier)
    };
    ($reading:ident by $reader:path) => {
        $reader($reading)?
    };
}

/// Declares [`Event`] and [`EventKind`], and how the fields of an event are read.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $kind:ident $name:literal $({ $(
            $(#[$field_doc:meta])*
            $field:ident: $type:ty = $($word:literal)? $(or $earlier:ident)? $(by $reader:path)?,
        )* })?
    )*) => {
        /// Something that the kernel recorded.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Event {
            $($(#[$doc])* $kind $({ $($(#[$field_doc])* $field: $type,)* })?,)*
        }

        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum EventKind {
            $(#[doc = concat!("`", $name, "`")] $kind,)*
        }

        impl Event {
            pub fn kind(&self) -> EventKind {
                match self { $(Event::$kind { .. } => EventKind::$kind,)* }
            }

            /// Reads the fields in the order of their declaration.
            pub(super) fn read(reading: &mut Reading<'_, '_>) -> Result<Event, Cause> {
                Ok(match reading.kind {
                    $(EventKind::$kind => {
                        $($(
                            let $field: $type =
                                read_field!(reading $($word)? $(or $earlier)? $(by $reader)?);
                        )*)?
                        Event::$kind $({ $($field),* })?
                    })*
                })
            }
        }

        impl EventKind {
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),*];

            pub fn name(self) -> &'static str {
                match self { $(EventKind::$kind => $name,)* }
            }

            pub(super) fn from_name(name: &[u8]) -> Option<EventKind> {
                $(if name == $name.as_bytes() { return Some(EventKind::$kind); })*
                match name {
                    b"hrtimer_init" => Some(EventKind::HrtimerSetup),
                    b"sched_wakeup_new" => Some(EventKind::SchedWakeup),
                    _ => None,
                }
            }
        }
    };
}

// The most frequent kinds come first, because `from_name` compares names in this order. Behind each
// field is the kernel's name for it, or the method that reads it.
events! {
    TimerStart "timer_start" {
        timer: TimerAddr = "timer",
        /// The requested expiry, before the wheel rounds it up to a bucket.
        expires: Jiffy = "expires",
        /// The kernel's jiffies at this moment: `expires` minus the printed timeout.
        now: Jiffy = by Reading::jiffies_at_start,
        function: NameId = "function",
        /// The CPU on whose wheel the timer was queued. Perhaps a different CPU queued it there.
        base: CpuId = by Reading::base_at_start,
        /// Whether the timer does not wake an idle CPU, but fires once the CPU is awake anyway.
        is_deferrable: bool = by Reading::is_deferrable,
    }
    /// A wheel timer was removed from its bucket: it was cancelled, or is about to be restarted or
    /// to expire.
    TimerCancel "timer_cancel" { timer: TimerAddr = "timer", }
    TimerInit "timer_init" { timer: TimerAddr = "timer", }
    /// A high-resolution timer was initialised (`hrtimer_init` before Linux 6.15).
    HrtimerSetup "hrtimer_setup" {
        timer: TimerAddr = "hrtimer",
        clock: ClockId = "clockid",
        mode: HrtimerMode = "mode",
    }
    HrtimerStart "hrtimer_start" {
        timer: TimerAddr = "hrtimer",
        /// Hard expiry: the latest time at which the timer should fire, on the timer's own clock.
        /// The event device is armed for it.
        expires: Ns = "expires",
        /// Soft expiry: from here on the timer can fire if the CPU is awake anyway. Equals
        /// `expires` where the kernel did not print it.
        soft_expires: Ns = "softexpires" or expires,
        function: NameId = "function",
        /// Whether the timer was pending already; `None` if the kernel did not print it.
        was_armed: Option<bool> = "was_armed",
    }
    /// A high-resolution timer was removed from its queue. Kernels before 7.0 also print this just
    /// before every [`Event::HrtimerExpireEntry`], unless the fix was backported to them.
    HrtimerCancel "hrtimer_cancel" { timer: TimerAddr = "hrtimer", }
    /// The timer was armed for a time that had passed. It was not queued: no expiry follows.
    HrtimerStartExpired "hrtimer_start_expired" { timer: TimerAddr = "hrtimer", }
    /// An event device was programmed, of any kind and on any architecture: Linux since 7.1.
    HrtimerRearm "hrtimer_rearm" {
        /// The time for which it was programmed; [`DEVICE_OFF`] if it was shut down.
        next: Ns = "next_event",
        /// Whether a timer interrupt had left this to its exit or to the scheduler.
        is_deferred: Option<bool> = "deferred",
    }
    /// A model-specific register was written; see [`Event::is_device_write`].
    WriteMsr "write_msr" {
        /// The value that was written: TSC cycles if `register` is [`TSC_DEADLINE_REGISTER`].
        value: u64 = by Reading::msr_value,
        register: u32 = by Reading::msr_register,
    }
    /// The CPU switched to another task. The record's `pid` is the task that it left.
    SchedSwitch "sched_switch" {
        /// 0 for the idle task.
        next_pid: u32 = "next_pid",
        /// Whether the task that the CPU left can still run; `None` if that is not printed.
        still_runs: Option<bool> = by Reading::still_runs,
        /// The kernel's priority of the next task: negative for deadlines, 0 to 99 for real time,
        /// the highest first, and 120 plus the nice value otherwise; `None` if it is not printed.
        next_priority: Option<i16> = by Reading::next_priority,
    }
    SchedWakeup "sched_wakeup" {
        target: CpuId = "target_cpu",
        pid: u32 = "pid",
    }
    /// A task that waits to run was moved to another CPU.
    SchedMigrate "sched_migrate_task" {
        pid: u32 = "pid",
        to: CpuId = "dest_cpu",
    }
    CpuIdle "cpu_idle" {
        cpu: CpuId = "cpu_id",
        /// The state that was entered; `None` when the CPU leaves idle.
        state: Option<u32> = "state",
    }
    HrtimerExpireEntry "hrtimer_expire_entry" {
        timer: TimerAddr = "hrtimer",
        /// The current time on the timer's own clock, read when the interrupt began.
        now: Ns = "now",
        function: NameId = "function",
    }
    /// A high-resolution timer's callback has returned. If it asked for a restart, the
    /// [`Event::HrtimerStart`] of that restart follows.
    HrtimerExpireExit "hrtimer_expire_exit" { timer: TimerAddr = "hrtimer", }
    LocalTimerEntry "local_timer_entry"
    LocalTimerExit "local_timer_exit"
    TimerExpireEntry "timer_expire_entry" {
        timer: TimerAddr = "timer",
        now: Jiffy = "now",
        /// The wheel's own clock in jiffies, which can be behind `now`; `now` if it is not printed.
        base_clock: Jiffy = "baseclk" or now,
        function: NameId = "function",
    }
    /// A wheel timer's callback has returned. Perhaps it has freed the timer.
    TimerExpireExit "timer_expire_exit" { timer: TimerAddr = "timer", }
    TimerBaseIdle "timer_base_idle"
    TickStop "tick_stop"
    /// A reschedule interrupt begins, which another CPU sent to make this one check its work.
    RescheduleEntry "reschedule_entry"
    RescheduleExit "reschedule_exit"
    SoftirqEntry "softirq_entry" { vector: u32 = "vec", }
    SoftirqExit "softirq_exit" { vector: u32 = "vec", }
    IrqEntry "irq_handler_entry" { irq: u32 = "irq", }
    IrqExit "irq_handler_exit" { irq: u32 = "irq", }
    TaskNew "task_newtask" { pid: u32 = "pid", }
    /// A process set or cleared an interval timer. The hrtimer behind it has events of its own.
    ItimerState "itimer_state"
    /// A process's interval timer expired. The hrtimer behind it has events of its own.
    ItimerExpire "itimer_expire"
}

impl Event {
    /// Returns whether this event programs a device. A trace that has [`EventKind::HrtimerRearm`]
    /// has one for every write; see [`super::Trace::device_writes`].
    pub fn is_device_write(&self) -> bool {
        match *self {
            Event::WriteMsr { register, .. } => register == TSC_DEADLINE_REGISTER,
            Event::HrtimerRearm { next, .. } => next != DEVICE_OFF,
            _ => false,
        }
    }

    /// Returns the CPU that the event concerns, if this can differ from the CPU that recorded it.
    pub fn target(&self) -> Option<CpuId> {
        match *self {
            Event::TimerStart { base, .. } => Some(base),
            Event::SchedWakeup { target, .. } | Event::SchedMigrate { to: target, .. } => {
                Some(target)
            }
            Event::CpuIdle { cpu, .. } => Some(cpu),
            _ => None,
        }
    }

    /// Returns the name of the timer's callback, if this event has it.
    pub fn function(&mut self) -> Option<&mut NameId> {
        match self {
            Event::TimerStart { function, .. }
            | Event::TimerExpireEntry { function, .. }
            | Event::HrtimerStart { function, .. }
            | Event::HrtimerExpireEntry { function, .. } => Some(function),
            _ => None,
        }
    }

    /// Returns the timer that this event is of.
    pub fn timer(&self) -> Option<(Family, TimerAddr)> {
        match *self {
            Event::TimerInit { timer }
            | Event::TimerStart { timer, .. }
            | Event::TimerCancel { timer }
            | Event::TimerExpireEntry { timer, .. }
            | Event::TimerExpireExit { timer } => Some((Family::Wheel, timer)),
            Event::HrtimerSetup { timer, .. }
            | Event::HrtimerStart { timer, .. }
            | Event::HrtimerStartExpired { timer }
            | Event::HrtimerCancel { timer }
            | Event::HrtimerExpireEntry { timer, .. }
            | Event::HrtimerExpireExit { timer } => Some((Family::Queue, timer)),
            _ => None,
        }
    }
}
