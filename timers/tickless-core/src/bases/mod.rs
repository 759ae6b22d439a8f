//! Many bases, one for each CPU. A base has the timers that fire on its CPU; any CPU can arm them.
//!
//! The files from the bottom up; each mainly uses the files above it in this table.
//!
//! | file | contents | contract |
//! |---|---|---|
//! | `settings` | the settings of bases | |
//! | `running` | records which callbacks a base runs; how to wait for one | X1, X7, R10 |
//! | `decide` | decides what an operation does to a timer | R9, X2-X5, X8 |
//! | `family` | the differences between coarse and precise timers | |
//! | `expiry_thread` | records what a base's expiry threads do | D3, D9 |
//! | `base` | one CPU's base: lock, queues, device; all bases together | W8 |
//! | `device` | programs a base's event device; recovers from lost events | R1-R8, R13 |
//! | `start` | arms timers | R1-R4, R9, X2, X3 |
//! | `cancel` | cancels timers, shuts them down, waits for callbacks | X1-X10, R10 |
//! | `migrate` | bases that go offline and come back online | D8 |
//! | `firing` | what a callback gets, and what it returns | |
//! | `expiry` | the handler of an event device | W1, W4, R5, R6, X4 |
//! | `by_deadline` | coarse timers in the order of their deadlines, for virtual time | W11 |
//! | `deferred` | expiry threads | D1-D6, D9 |
//! | `pending` | lists pending timers, a slice at a time | |
//! | `check` | the slow full check of a base | |

mod base;
mod by_deadline;
pub mod cancel;
pub mod check;
mod decide;
pub mod deferred;
mod device;
pub mod expiry;
mod expiry_thread;
mod family;
pub mod firing;
pub mod migrate;
pub mod pending;
pub mod running;
mod settings;
mod start;

pub use crate::state::FiresIn;
pub use base::{BaseCounts, BaseView, Bases, CoarseTimer, Late, RangedTimer};
pub use expiry_thread::DeferredCounts;
pub use family::{Arming, Family, Queues};
pub use settings::{CoarseExpiry, Deferral, HOLDING, Scan, Settings, WheelEvents};
pub use start::{IfPending, Options, StartError, Started};
