//! How bases are set up: the choices, each with the behaviour that it replaces.

use crate::queues::wheel::PushOut;
use crate::rearm::{HandlerEnd, LazyTimers, Limits, Policy};
use crate::time::{Ns, Tick};

/// One holding of a base's lock moves, hands out or looks at no more timers than this, whatever was
/// pushed out, collected, evacuated or listed; between two holdings anybody may start or cancel.
pub const HOLDING: usize = 64;

/// How the bases of one program or machine are set up.
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
    /// Do event devices leave lazy timers alone?
    pub lazy_timers: LazyTimers,
    /// When a handler's end programs the event device. One that puts off needs somebody who calls
    /// [`Bases::settle_device`](super::Bases::settle_device).
    pub handler_end: HandlerEnd,
    /// What the event devices can do.
    pub limits: Limits,
    /// Do coarse timers program the event device? Not in a kernel, whose wheel rides on a
    /// periodic tick that is itself a high-resolution timer.
    pub wheel: WheelEvents,
    /// Who fires coarse timers, and the precise ones that ask for it.
    pub deferral: Deferral,
    /// How long an expiry thread may be in one callback before another thread takes its other
    /// timers over (D9); [`Ns::NEVER`] for as long as it likes.
    pub patience: Ns,
    /// Where a synchronous cancel looks.
    pub scan: Scan,
}

/// Which bases a synchronous cancel looks at for a callback of its timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Scan {
    /// The timer's own: a running timer stays there (X2), so there is no other.
    #[default]
    RunningBase,
    /// Every base, as the kernel did until 2005. The result is the same; the cost grows with the
    /// number of bases.
    AllBases,
}

/// When a coarse timer fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CoarseExpiry {
    /// With its bucket, which is cheap: late by up to 13 % of its distance and a tick.
    #[default]
    WithBucket,
    /// At its deadline, if its base is looked at then, which
    /// [`exact_next_event`](super::Bases::exact_next_event) tells. For a clock that stands still
    /// meanwhile, since holdings of the lock are not bounded; with [`PushOut::Eager`].
    AtDeadline,
}

/// Who makes sure that the wheel is advanced in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WheelEvents {
    /// The event device, like everything else.
    #[default]
    Device,
    /// Somebody else's tick.
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

/// Who fires coarse timers and those that ask for it, and when that one is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Deferral {
    /// The handler, like all others. There is no expiry thread.
    #[default]
    None,
    /// An expiry thread, woken only when something has expired.
    OnExpiry,
    /// An expiry thread, woken by every tick: before the patch.
    EveryTick,
}
