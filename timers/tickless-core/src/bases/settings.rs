//! The settings of bases. Some of their values make bases do what Linux does or did in earlier
//! versions, for comparison.

use crate::queues::wheel::PushOut;
use crate::rearm::{HandlerEnd, LazyTimers, Limits, Policy};
use crate::time::{Ns, Tick};

/// A thread that holds a base's lock moves, fires or checks at most this many timers before it
/// unlocks, even if it has more timers to fire, to move to another base or to list. It continues
/// when it has taken the lock again; in between, other threads can start or cancel timers.
pub const HOLDING: usize = 64;

/// The settings of the bases of one program or machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The wheel's tick.
    pub tick: Tick,
    /// How pending coarse timers are pushed out.
    pub push_out: PushOut,
    /// When coarse timers fire.
    pub coarse: CoarseExpiry,
    /// When a removal programs the event device.
    pub policy: Policy,
    /// Whether event devices ignore removals of lazy timers, which nearly always get a later time.
    pub lazy_timers: LazyTimers,
    /// When a handler's end programs the event device. With [`HandlerEnd::Defers`], the caller of
    /// the handler must call [`Bases::settle_device`](super::Bases::settle_device).
    pub handler_end: HandlerEnd,
    /// The limits of the event devices.
    pub limits: Limits,
    /// Whether coarse timers program the event device. In Linux they do not: a periodic tick, which
    /// is itself a high-resolution timer, advances the wheel.
    pub wheel: WheelEvents,
    /// Whether a thread runs the callbacks of coarse timers, and of precise ones that request it.
    pub deferral: Deferral,
    /// How long an expiry thread can execute one callback before another thread takes over its
    /// other timers (D9); [`Ns::NEVER`] for no limit.
    pub patience: Ns,
    /// The bases that a synchronous cancel checks.
    pub scan: Scan,
}

/// The bases that a synchronous cancel checks for a callback of its timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Scan {
    /// Only the timer's own base is checked, because a running timer stays on its base (X2).
    #[default]
    RunningBase,
    /// Every base is checked, as in Linux until 2005. The result is the same, but the cost grows
    /// with the number of bases.
    AllBases,
}

/// When a coarse timer fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CoarseExpiry {
    /// A coarse timer fires when its bucket of the wheel comes due, which is cheap. It is late by
    /// up to 13 % of the time between arming and deadline, plus one tick.
    #[default]
    WithBucket,
    /// A coarse timer fires exactly at its deadline, if the handler runs at the time that
    /// [`exact_next_event`](super::Bases::exact_next_event) returns. Requires [`PushOut::Eager`].
    /// For virtual clocks only, because the time for which the lock is held is not bounded.
    AtDeadline,
}

/// What advances the wheel in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WheelEvents {
    /// The event device.
    #[default]
    Device,
    /// A periodic tick that the caller provides.
    Tick,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            tick: Tick::MILLISECOND,
            push_out: PushOut::default(),
            coarse: CoarseExpiry::default(),
            policy: Policy::default(),
            lazy_timers: LazyTimers::default(),
            handler_end: HandlerEnd::default(),
            limits: Limits::NONE,
            wheel: WheelEvents::default(),
            deferral: Deferral::default(),
            patience: Ns::NEVER,
            scan: Scan::default(),
        }
    }
}

/// Where the callbacks of coarse timers run: in the event device's handler or an expiry thread. The
/// setting also applies to those precise timers that request to run in an expiry thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Deferral {
    /// The callbacks run in the event device's handler, like all others. There is no expiry thread.
    #[default]
    None,
    /// The callbacks run in an expiry thread that is woken only when a timer has expired.
    OnExpiry,
    /// The callbacks run in an expiry thread that every tick wakes, as in Linux's real-time branch.
    EveryTick,
}
