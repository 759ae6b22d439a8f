//! The owners of a timer and its callback, and the state that the timers of a set share.
//!
//! | file | what |
//! |---|---|
//! | `arena` | the memory that timers live in |
//! | `cancel_error` | why a synchronous cancel has stopped waiting |
//! | `clock_timers` | the timers of a set on clocks that can be set |
//! | `counters` | counts beside those of the bases: cancels, and how long callbacks take |
//! | `drive` | the work of drivers, expiry threads and event loops |
//! | `ends` | when the memory of a timer may be freed |
//! | `entry` | a timer inside a future |
//! | `fired` | the argument of a callback |
//! | `frame` | the callbacks on the calling thread's stack |
//! | `glue` | what the core carries for each timer |
//! | `inline` | a timer with its callback inside a struct of the program |
//! | `notes` | notes on single timers: labels, and where they were armed |
//! | `orphans` | timers that were dropped while their callback ran |
//! | `owned` | a timer with its callback in one allocation |
//! | `pinned` | arming, cancelling and ending a timer, for all its owners |
//! | `run` | running a callback, and reporting on it |
//! | `shared` | a set of timers, and the handles that keep it running |
//! | `slot` | timers in memory that the caller provides |
//! | `turns` | access to a future's waker: the protocol of task and driver |
//! | `users` | the number of users of a set, by CPU |
//! | `waits` | the wait graph, which tells a wait from a deadlock |
//! | `wakers` | the wakers that a batch of callbacks has collected |

mod arena;
pub(crate) mod cancel_error;
pub(crate) mod clock_timers;
pub(crate) mod counters;
mod drive;
mod ends;
pub(crate) mod entry;
pub(crate) mod fired;
pub(crate) mod frame;
pub(crate) mod glue;
pub(crate) mod inline;
pub(crate) mod notes;
mod orphans;
pub(crate) mod owned;
pub(crate) mod pinned;
mod run;
pub(crate) mod shared;
pub(crate) mod slot;
mod turns;
mod users;
pub(crate) mod waits;
pub(crate) mod wakers;
