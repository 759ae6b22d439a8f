//! Bandwidth groups: a quota for each period.
//!
//! A group has a pool, and a refill adds the quota to it once in every period. Members take slices
//! from the pool and spend a slice without further calls. A member that finds the pool empty
//! waits, and a refill releases waiting members in the order in which they began to wait. This is
//! the mechanism of the kernel's CPU bandwidth control, for threads, permits, or the simulated
//! machine. A group uses neither clocks nor threads: the caller passes the current time and wakes
//! the members that the group releases.
//!
//! # Guarantees
//!
//! - Every unit is accounted for: `refilled = used + expired + held`, where `held` is the amount
//!   in the pool and with the members. A member that charges more than it holds owes the
//!   difference and pays it from its next slice. If it leaves first, the pool takes over the debt.
//! - The group holds at most `quota + extra`, apart from refunds that members keep. So in N periods
//!   members use at most `(N + 1) x quota + extra`, plus what they owe at the end.
//! - First come, first served: a member that asks while others wait is queued behind them.
//! - After a refill, members are released in batches ([`Release`]) rather than all at once, and
//!   only while the pool has quota for them.
//! - A late refill adds the quota of every period since the last one, up to the capacity.
//!   Periods without a refill of their own are counted, unless the group was idle in them.
//! - A clock that steps back only delays a refill. A clock that steps ahead adds no more than the
//!   capacity.
//!
//! # Cost
//!
//! Every operation takes O(1), amortised if waiting members have left. Joining and waiting can
//! allocate; charging, refilling and releasing do not.

mod counts;
mod group;
mod period;
mod permits;
mod settings;

pub use counts::Counts;
pub use group::{AskError, Grant, Group, MemberId};
pub use period::{PERIOD_LIMIT, PERIOD_MIN};
pub use permits::{Permits, Take};
pub use settings::{AMOUNT_MAX, BandwidthError, Release, Settings};
