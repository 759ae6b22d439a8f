//! Bandwidth groups: so much in every period, and then a pause (P6).
//!
//! A group has a pool, which every period fills up by the quota. Members take slices out of the
//! pool and spend them without asking; who finds the pool empty waits. A refill lets those that
//! wait go again, the longest waiting first. It is the mechanism of the kernel's CPU bandwidth
//! control, for threads, permits, or the simulated machine: the group knows neither clock nor
//! thread, so the present is passed in, and who is to be woken is handed out.
//!
//! # Guarantees
//!
//! - Every unit is accounted for, always: `refilled = used + expired + held`, where `held` is what
//!   is in the pool and with the members. Who charges more than it has owes the difference, and
//!   pays it out of the next slice; who leaves in debt leaves the debt to the pool.
//! - At most `quota + extra` are held at any time, but for refunds that members keep. So in N
//!   periods no more is used than `(N + 1) x quota + extra` and what members owe at the end.
//! - First come, first served: whoever asks while others wait, waits behind them.
//! - After a refill members are let go in batches ([`Release`]), not as a herd, and only as many
//!   as there is quota for.
//! - A refill that comes late brings what all periods since are worth, as far as there is room.
//!   If three in a row miss a whole period, and the group was not at rest, the period cannot be
//!   kept: it is doubled, with the quota, so that the rate stays; after 64 that come in time it is
//!   halved again. Both are counted.
//! - A clock that steps back only makes a refill wait; one that steps ahead brings no more than
//!   there is room for.
//!
//! # Cost
//!
//! O(1) for everything, amortised where somebody left while waiting. Joining and waiting may
//! allocate; charging, refilling and letting go do not.
//!
//! # Example
//!
//! ```
//! use tickless_core::bandwidth::{Grant, Group, Release, Settings};
//! use tickless_core::time::Ns;
//!
//! let period = Ns::from_ms(100);
//! let settings = Settings { quota: 10, period, extra: 0, slice: 5, release: Release::TOGETHER };
//! let mut group = Group::new(settings, period)?;
//! let (a, b) = (group.join(), group.join());
//!
//! assert_eq!(group.ask(a, 8, Ns::ZERO)?, Grant::Run(8));
//! assert_eq!(group.ask(b, 8, Ns::ZERO)?, Grant::Wait);
//! group.charge(a, 8);
//!
//! group.refill(period);
//! assert_eq!(group.pop_released(period), Some(b));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Files
//!
//! | file | holds |
//! |---|---|
//! | `settings` | quota, period and slices of a group, and which of them are refused |
//! | `period` | how short and how long a period may be; which refills have passed |
//! | `permits` | the word from which permits are taken without a lock |
//! | `counts` | what has happened in a group |
//! | `group` | a group: its pool, its members, and how they ask for more |
//! | `group/refill` | what a period brings; stretching a period that cannot be kept |
//! | `group/line` | those that wait, and how they are let go |
//! | `group/check` | is a group in order? for tests |
//!
//! `permits` is generic over [`Word`](crate::word::Word), so that the host and the model
//! checkers run the same code; everything else knows neither words nor threads.

mod counts;
mod group;
mod period;
mod permits;
mod settings;

pub use counts::Counts;
pub use group::{AskError, BandwidthFault, Grant, Group, MemberId, Refill};
pub use period::{PERIOD_LIMIT, PERIOD_MIN};
pub use permits::{Permits, Take};
pub use settings::{AMOUNT_MAX, Release, Settings, SettingsError};
