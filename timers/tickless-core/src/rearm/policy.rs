//! Choices of which operations program the device.

/// Whether the removal of a timer programs the event device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Every removal of the earliest timer programs the device, also as part of a restart: Linux
    /// from commit 968320b (2010) on, as measured by the report that proposed lazy rearming.
    Eager,
    /// No removal programs the device (lazy rearming). The device can fire with no timer due.
    #[default]
    Lazy,
    /// A cancel of the earliest timer programs the device; a restart of it writes at most once.
    /// Current Linux does this.
    RestartAware,
}

impl Policy {
    /// All policies, in the order in which tables list them.
    pub const ALL: [Policy; 3] = [Policy::Eager, Policy::Lazy, Policy::RestartAware];
}

/// Whether the event device must follow a timer's changes: a fixed property of each timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Urgency {
    /// The [`Policy`] decides when a change of the timer programs the device.
    #[default]
    Prompt,
    /// The timer nearly always moves later, such as the timer that ends a scheduler's time slice.
    /// The device need not follow the timer, and can fire with no timer due.
    Lazy,
}

/// Whether the device ignores the removal of lazy timers. With [`Policy::RestartAware`], Linux 7.1
/// ignores it for the timer that ends a scheduler's time slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum LazyTimers {
    /// All timers are treated alike.
    #[default]
    Ignored,
    /// Removing or pushing out a lazy timer does not program the device.
    Honoured,
}

/// When a handler's end programs the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum HandlerEnd {
    /// At once.
    #[default]
    Programs,
    /// The device is programmed later, by one call of [`Device::settle`](super::Device::settle),
    /// made by the handler's caller when the next task has been chosen and its timers are armed.
    /// Until then nothing programs it. Linux 7.1 does this on architectures that support it.
    Defers,
}
