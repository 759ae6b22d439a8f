//! The events a kernel timer trace is made of, typed.
//!
//! Ground rules:
//! - An event holds what its line printed, in the line's own units: jiffies for the
//!   wheel (`timer_*`), nanoseconds for the queue (`hrtimer_*`). Nothing is converted
//!   here; [`super::JiffyClock`] and [`super::MonotonicOffset`] do that.
//! - Every event fits 32 bytes, and fewer where a trace is kept: see [`super::Records`]. Names are
//!   interned, those of tasks kept once a task.

use tickless_core::time::{CpuId, Ns};

use super::attributes::{Bucket, ClockId, HrtimerMode, TimerFlags};
use super::names::NameId;

/// A timer's address as printed. It is a name and nothing else: kernels hash it, and
/// reuse it once the timer is freed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TimerAddr(pub u64);

/// A value of the kernel's tick counter. Where it lies in time says [`super::JiffyClock`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Jiffy(pub u64);

/// The register a CPU's timer interrupt is programmed through: IA32_TSC_DEADLINE.
pub const TSC_DEADLINE_REGISTER: u32 = 0x6e0;

/// One thing the kernel said it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A wheel timer was initialised.
    TimerInit {
        /// Which timer.
        timer: TimerAddr,
    },
    /// A wheel timer was queued.
    TimerStart {
        /// Which timer.
        timer: TimerAddr,
        /// The expiry asked for, before the wheel rounds it up to a bucket.
        expires: Jiffy,
        /// The kernel's jiffies at this moment: `expires` less the printed timeout.
        now: Jiffy,
        /// Its callback.
        function: NameId,
        /// The base it was queued on; not always the CPU that queued it.
        base: CpuId,
        /// The bucket it went to.
        bucket: Bucket,
        /// Deferrable, pinned, irqsafe.
        flags: TimerFlags,
    },
    /// A wheel timer was taken off its bucket: cancelled, re-armed or about to expire.
    TimerCancel {
        /// Which timer.
        timer: TimerAddr,
    },
    /// A wheel timer's callback begins.
    TimerExpireEntry {
        /// Which timer.
        timer: TimerAddr,
        /// The kernel's jiffies at this moment.
        now: Jiffy,
        /// The wheel's own clock; equals `now` where the kernel did not print it.
        base_clock: Jiffy,
        /// Its callback.
        function: NameId,
    },
    /// A wheel timer's callback has returned.
    TimerExpireExit {
        /// Which timer. It may have been freed by its callback.
        timer: TimerAddr,
    },
    /// A high-resolution timer was initialised (`hrtimer_init` before Linux 6.15).
    HrtimerSetup {
        /// Which timer.
        timer: TimerAddr,
        /// The clock its expiry is measured on.
        clock: ClockId,
        /// How it will be used.
        mode: HrtimerMode,
    },
    /// A high-resolution timer was queued.
    HrtimerStart {
        /// Which timer.
        timer: TimerAddr,
        /// Hard expiry on the timer's own clock: what the device is armed for.
        expires: Ns,
        /// Soft expiry: may fire from here when the CPU is awake anyway. Equals
        /// `expires` where the kernel did not print it.
        soft_expires: Ns,
        /// Its callback.
        function: NameId,
        /// Pinned, soft, hard; all clear where the kernel did not print it.
        mode: HrtimerMode,
        /// Whether it was queued already and this moves it, where printed.
        was_armed: Option<bool>,
    },
    /// A high-resolution timer was taken off its queue. Kernels before 7.0 also say so just
    /// before every [`Event::HrtimerExpireEntry`], unless the fix was backported to them.
    HrtimerCancel {
        /// Which timer.
        timer: TimerAddr,
    },
    /// A high-resolution timer's callback begins.
    HrtimerExpireEntry {
        /// Which timer.
        timer: TimerAddr,
        /// Now, on the timer's own clock, as read when the interrupt began.
        now: Ns,
        /// Its callback.
        function: NameId,
    },
    /// A high-resolution timer's callback has returned; if it asked for a restart, the
    /// [`Event::HrtimerStart`] that does so follows.
    HrtimerExpireExit {
        /// Which timer.
        timer: TimerAddr,
    },
    /// A wheel base was marked idle, or no longer idle.
    TimerBaseIdle {
        /// The new state.
        is_idle: bool,
        /// Whose base.
        base: CpuId,
    },
    /// The periodic tick of this CPU was stopped, or could not be.
    TickStop {
        /// Whether it was stopped.
        success: bool,
        /// What forbade it; `NONE` on success.
        dependency: NameId,
    },
    /// The timer interrupt begins.
    LocalTimerEntry,
    /// The timer interrupt ends.
    LocalTimerExit,
    /// An interrupt sent by another CPU to make this one look at its work begins.
    RescheduleEntry,
    /// That interrupt ends.
    RescheduleExit,
    /// A model-specific register was written; see [`Event::is_device_write`].
    WriteMsr {
        /// Which register.
        register: u32,
        /// What was written; for the deadline register, TSC cycles.
        value: u64,
    },
    /// The CPU went from one task to another; task 0 is the idle task.
    SchedSwitch {
        /// Who left.
        prev_pid: u32,
        /// Who came.
        next_pid: u32,
    },
    /// A task was woken.
    SchedWakeup {
        /// Who.
        pid: u32,
        /// Where it will run.
        target: CpuId,
    },
    /// The CPU entered an idle state, or left it.
    CpuIdle {
        /// The state entered; [`CPU_IDLE_EXIT`] on leaving.
        state: u32,
        /// Which CPU.
        cpu: CpuId,
    },
    /// The CPU begins to handle softirqs of this vector.
    SoftirqEntry {
        /// Which, as the kernel numbers them.
        vector: u32,
    },
    /// It has handled them.
    SoftirqExit {
        /// Which.
        vector: u32,
    },
    /// The CPU begins to handle a device's interrupt.
    IrqEntry {
        /// Which.
        irq: u32,
    },
    /// It has handled it.
    IrqExit {
        /// Which.
        irq: u32,
    },
    /// A thread was made, by the one that the CPU was in.
    TaskNew {
        /// Its number.
        pid: u32,
        /// Whether it is one more thread of the same process.
        is_thread: bool,
    },
    /// A process set or cleared an interval timer. Its hrtimer has events of its own.
    ItimerState,
    /// A process's interval timer expired. Its hrtimer has events of its own.
    ItimerExpire,
}

/// The state a `cpu_idle` event prints when the CPU stops idling: -1 as 32 bits.
pub const CPU_IDLE_EXIT: u32 = u32::MAX;

impl Event {
    /// Whether this programmed the timer interrupt.
    pub fn is_device_write(&self) -> bool {
        matches!(self, Event::WriteMsr { register: TSC_DEADLINE_REGISTER, .. })
    }

    /// The CPU that the event is about where that is not the one it happened on.
    pub fn target(&self) -> Option<CpuId> {
        match *self {
            Event::TimerStart { base, .. } | Event::TimerBaseIdle { base, .. } => Some(base),
            Event::SchedWakeup { target, .. } => Some(target),
            Event::CpuIdle { cpu, .. } => Some(cpu),
            _ => None,
        }
    }

    /// Which kind of event this is, without its fields.
    pub fn kind(&self) -> EventKind {
        match self {
            Event::TimerInit { .. } => EventKind::TimerInit,
            Event::TimerStart { .. } => EventKind::TimerStart,
            Event::TimerCancel { .. } => EventKind::TimerCancel,
            Event::TimerExpireEntry { .. } => EventKind::TimerExpireEntry,
            Event::TimerExpireExit { .. } => EventKind::TimerExpireExit,
            Event::HrtimerSetup { .. } => EventKind::HrtimerSetup,
            Event::HrtimerStart { .. } => EventKind::HrtimerStart,
            Event::HrtimerCancel { .. } => EventKind::HrtimerCancel,
            Event::HrtimerExpireEntry { .. } => EventKind::HrtimerExpireEntry,
            Event::HrtimerExpireExit { .. } => EventKind::HrtimerExpireExit,
            Event::TimerBaseIdle { .. } => EventKind::TimerBaseIdle,
            Event::TickStop { .. } => EventKind::TickStop,
            Event::LocalTimerEntry => EventKind::LocalTimerEntry,
            Event::LocalTimerExit => EventKind::LocalTimerExit,
            Event::RescheduleEntry => EventKind::RescheduleEntry,
            Event::RescheduleExit => EventKind::RescheduleExit,
            Event::WriteMsr { .. } => EventKind::WriteMsr,
            Event::SchedSwitch { .. } => EventKind::SchedSwitch,
            Event::SchedWakeup { .. } => EventKind::SchedWakeup,
            Event::CpuIdle { .. } => EventKind::CpuIdle,
            Event::SoftirqEntry { .. } => EventKind::SoftirqEntry,
            Event::SoftirqExit { .. } => EventKind::SoftirqExit,
            Event::IrqEntry { .. } => EventKind::IrqEntry,
            Event::IrqExit { .. } => EventKind::IrqExit,
            Event::TaskNew { .. } => EventKind::TaskNew,
            Event::ItimerState => EventKind::ItimerState,
            Event::ItimerExpire => EventKind::ItimerExpire,
        }
    }
}

/// Declares [`EventKind`] beside the kernel's name for each kind, so that the two
/// cannot drift apart.
macro_rules! event_kinds {
    ($($kind:ident $name:literal)*) => {
        /// The kinds of events that are read, without their fields.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum EventKind {
            $(#[doc = concat!("`", $name, "`")] $kind,)*
        }

        impl EventKind {
            /// Every kind, in the order of their numbers.
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),*];

            /// The kernel's name for it (6.18).
            pub fn name(self) -> &'static str {
                match self { $(EventKind::$kind => $name,)* }
            }

            /// The kind of a kernel event, by any name it has or had.
            pub(super) fn from_name(name: &[u8]) -> Option<EventKind> {
                const OLDER_NAME: &[u8] = b"hrtimer_init";
                const NEW_TASK: &[u8] = b"sched_wakeup_new";
                $(if name == $name.as_bytes() { return Some(EventKind::$kind); })*
                match name {
                    OLDER_NAME => Some(EventKind::HrtimerSetup),
                    NEW_TASK => Some(EventKind::SchedWakeup),
                    _ => None,
                }
            }
        }
    };
}

// The most frequent come first: names are compared in this order.
event_kinds! {
    TimerStart "timer_start"
    TimerCancel "timer_cancel"
    TimerInit "timer_init"
    HrtimerSetup "hrtimer_setup"
    HrtimerStart "hrtimer_start"
    HrtimerCancel "hrtimer_cancel"
    WriteMsr "write_msr"
    SchedSwitch "sched_switch"
    SchedWakeup "sched_wakeup"
    CpuIdle "cpu_idle"
    HrtimerExpireEntry "hrtimer_expire_entry"
    HrtimerExpireExit "hrtimer_expire_exit"
    LocalTimerEntry "local_timer_entry"
    LocalTimerExit "local_timer_exit"
    TimerExpireEntry "timer_expire_entry"
    TimerExpireExit "timer_expire_exit"
    TimerBaseIdle "timer_base_idle"
    TickStop "tick_stop"
    RescheduleEntry "reschedule_entry"
    RescheduleExit "reschedule_exit"
    SoftirqEntry "softirq_entry"
    SoftirqExit "softirq_exit"
    IrqEntry "irq_handler_entry"
    IrqExit "irq_handler_exit"
    TaskNew "task_newtask"
    ItimerState "itimer_state"
    ItimerExpire "itimer_expire"
}

impl EventKind {
    /// Whether it tells of a timer; a trace without any cannot be replayed.
    pub fn is_timer(self) -> bool {
        self.is_wheel() || self.is_queue()
    }

    /// Whether it tells of a wheel timer (`timer_*`, in jiffies).
    pub fn is_wheel(self) -> bool {
        matches!(
            self,
            EventKind::TimerInit
                | EventKind::TimerStart
                | EventKind::TimerCancel
                | EventKind::TimerExpireEntry
                | EventKind::TimerExpireExit
        )
    }

    /// Whether it tells of a high-resolution timer (`hrtimer_*`, in ns).
    pub fn is_queue(self) -> bool {
        matches!(
            self,
            EventKind::HrtimerSetup
                | EventKind::HrtimerStart
                | EventKind::HrtimerCancel
                | EventKind::HrtimerExpireEntry
                | EventKind::HrtimerExpireExit
        )
    }
}
