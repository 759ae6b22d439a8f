//! Choices: which operations program the device, and which leave it to others.

/// When a removal programs the device (R12).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Every removal of the first timer programs it, a restart as well: the kernel from
    /// commit 968320b (2010) on, as the report measured it that proposed lazy rearming.
    Eager,
    /// No removal programs it (lazy rearming). An event may come early, for nothing.
    #[default]
    Lazy,
    /// A cancel of the first timer programs, a restart is judged once, as a whole: what the
    /// kernel does today.
    RestartAware,
}

impl Policy {
    /// All of them, in the order in which tables show them.
    pub const ALL: [Policy; 3] = [Policy::Eager, Policy::Lazy, Policy::RestartAware];
}

/// What a timer wants of the event device, for as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Urgency {
    /// The device follows it, as the policy says.
    #[default]
    Prompt,
    /// It is armed anew all the time and nearly always moves later, such as a scheduler's slice:
    /// the device need not follow. An event may come early, for nothing.
    Lazy,
}

/// Does the device treat lazy timers as such? Together with [`Policy::RestartAware`], as Linux 7.1
/// does for the timer of the scheduler's slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum LazyTimers {
    /// All timers are alike.
    #[default]
    Ignored,
    /// Removing a lazy timer programs nothing, and neither does pushing it out.
    Honoured,
}

/// When a handler's end programs the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum HandlerEnd {
    /// At once.
    #[default]
    Programs,
    /// Not at all: whoever runs the handler does so later, once, with
    /// [`Device::settle`](super::Device::settle), when the next task has been chosen and its timers
    /// are armed. Until then nothing programs it. Linux 7.1 does so where the architecture has a
    /// place for it.
    Defers,
}
