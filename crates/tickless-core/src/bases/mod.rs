//! Many bases, one a CPU: timers that any CPU arms, cancels and fires.
//!
//! From the bottom up; each file uses those above it in this table alone.
//!
//! | file | holds | contract |
//! |---|---|---|
//! | `settings` | how bases are set up | |
//! | `running` | which callbacks a base runs, and waiting until one is over | X1, X7, R10 |
//! | `family` | what coarse and precise timers differ in | |
//! | `expiry_thread` | what a base knows of its expiry threads | D3, D9 |
//! | `base` | one CPU's base: lock, queues, device; all bases together | W8 |
//! | `device` | telling a base's event device; looking after one that does not come | R1-R8, R13 |
//! | `start` | how a timer gets onto a base | R1-R4, R9, X2, X3 |
//! | `cancel` | the cancel family; shut-down; is-it-active | X1-X10, R10 |
//! | `migrate` | bases that go offline and come back | D8 |
//! | `expiry` | what an event device's handler does with a base | W1, W4, R5, R6, X4 |
//! | `by_deadline` | coarse timers in the order of their deadlines, for virtual time | W11 |
//! | `deferred` | what it leaves to an expiry thread | D1-D6, D9 |
//! | `pending` | looking at what is pending, a slice at a time | |
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
