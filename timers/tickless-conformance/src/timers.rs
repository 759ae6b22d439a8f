//! What the suite knows about the timers under test: the operations and the promises.

use core::ops::RangeInclusive;

/// A set of timers under test.
///
/// Times are nanoseconds since the set was made, so time zero is the time of [`Timers::new`]. A
/// timer is identified by a key that the suite chooses. Timers that hand out keys of their own need
/// a map in the implementation.
///
/// The constants are promises, and the suite holds the timers to them and to nothing else. The
/// default values suit an exact queue without `next_event`.
pub trait Timers: Sized {
    /// The name in reports.
    const NAME: &str;
    /// The length of a tick in nanoseconds: times that are not multiples of it are rounded.
    const GRANULARITY: u64 = 1;
    /// How a deadline between two ticks is rounded.
    const ROUNDING: Rounding = Rounding::Up;
    /// What [`Timers::cancel`] promises.
    const CANCEL: Cancel = Cancel::Reports;
    /// What [`Timers::next_event`] promises.
    const NEXT_EVENT: NextEvent = NextEvent::None;
    /// The order of timers that fire in one call of [`Timers::advance`].
    const ORDER: Order = Order::Any;
    /// Whether [`Timers::arm`] of a pending key moves that timer.
    const ARM_REPLACES: bool = false;
    /// Whether callbacks run before `advance` has finished, and can arm and cancel timers then.
    const REENTRANT: bool = false;
    /// The farthest deadline, in nanoseconds from the current time.
    const HORIZON: u64 = 100 * 365 * 24 * 3_600 * 1_000_000_000;

    /// Makes an empty set, whose time is zero.
    fn new() -> Self;

    /// Arms a timer. If `deadline` has passed, the timer fires in a following `advance`.
    fn arm(&mut self, key: u32, deadline: u64);

    /// Moves a pending timer to a later or earlier deadline. By default, cancels and arms it.
    fn push_out(&mut self, key: u32, deadline: u64) {
        self.cancel(key);
        self.arm(key, deadline);
    }

    /// Cancels a timer, and returns whether it was pending, if [`Timers::CANCEL`] promises this.
    fn cancel(&mut self, key: u32) -> bool;

    /// Moves time to `now`, which is never earlier than before, and fires what is due: calls `fire`
    /// with the set and the key of each timer.
    ///
    /// If the timers are not [`Timers::REENTRANT`], `fire` does not use the set. An implementation
    /// whose timers are returned in a list calls `fire` for each entry of the list.
    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Self, u32));

    /// Returns when `advance` must be called next, or `None` if no timer is pending. Called only if
    /// [`Timers::NEXT_EVENT`] promises an answer.
    fn next_event(&mut self) -> Option<u64> {
        None
    }

    /// Returns when a timer is allowed to fire that was armed at `now`: the first time at which an
    /// `advance` is allowed to fire it, and the first at which it must. By default, these follow
    /// from the granularity and the rounding; a timer whose deadline has passed can take one more
    /// tick.
    ///
    /// Implement this for timers that promise a lateness in proportion to the delay.
    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        Self::ROUNDING.may_fire(Self::GRANULARITY, now, deadline)
    }
}

/// How a deadline between two ticks is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Rounds to the later tick: timers are never early, and late by less than a tick.
    Up,
    /// Rounds to the earlier tick: timers are early by less than a tick, and not late.
    Down,
    /// To the nearer tick.
    Nearest,
}

impl Rounding {
    /// Returns the default of [`Timers::may_fire`] for timers of this granularity.
    pub fn may_fire(self, granularity: u64, now: u64, deadline: u64) -> RangeInclusive<u64> {
        let tick = granularity.max(1);
        let down = |time: u64| time - time % tick;
        let up = |time: u64| down(time.saturating_add(tick - 1));
        let due = deadline.max(now);
        let (first, last) = match self {
            Rounding::Up => (due, up(due)),
            Rounding::Down => (down(due), due),
            Rounding::Nearest => (due.saturating_sub(tick / 2), due.saturating_add(tick / 2)),
        };
        first..=if deadline <= now { up(last).saturating_add(tick) } else { last }
    }
}

/// What [`Timers::cancel`] promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancel {
    /// The timers cannot be cancelled. The suite never calls `cancel`, and calls `push_out` only if
    /// arming a pending timer moves it ([`Timers::ARM_REPLACES`]).
    None,
    /// A cancelled timer does not fire. What `cancel` returns means nothing.
    Silent,
    /// A cancelled timer does not fire, and `cancel` returns whether the timer was pending.
    Reports,
}

/// What [`Timers::next_event`] promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextEvent {
    /// There is none.
    None,
    /// No timer is due before the time that `next_event` returns. A driver that wakes up then
    /// perhaps finds nothing to fire.
    Bound,
    /// At the time that `next_event` returns, a timer is due. It returns `None` if and only if no
    /// timer is pending.
    Exact,
}

/// The order of timers that fire in one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// No order is promised.
    Any,
    /// By rounded deadline.
    Deadline,
    /// By rounded deadline, and timers of equal deadlines in the order in which they were armed.
    DeadlineThenArming,
}
