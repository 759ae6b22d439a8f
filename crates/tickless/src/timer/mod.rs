//! The types that own a timer and its callback, and the state that all timers of a set share. A set
//! of timers has its own bases, one for each CPU, and its own drivers, which fire the timers.
//!
//! | file | what |
//! |---|---|
//! | `arena` | the memory that timers live in |
//! | `cancel_error` | why a synchronous cancel has stopped waiting |
//! | `clock_timers` | the timers of a set on clocks that can be set |
//! | `counters` | counts that the bases do not keep: cancels, and how long callbacks take |
//! | `drive` | the work of drivers, expiry threads and event loops |
//! | `ends` | when the memory of a timer may be freed |
//! | `entry` | a timer inside a future |
//! | `fired` | the argument of a callback |
//! | `frame` | the callbacks on the calling thread's stack |
//! | `glue` | the functions for one type of timer memory, to which each timer points |
//! | `inline` | a timer with its callback inside a struct of the program |
//! | `notes` | notes on single timers: labels, and where they were armed |
//! | `orphans` | timers that were dropped while their callback ran |
//! | `owned` | a timer with its callback in one allocation |
//! | `pinned` | arming, cancelling and ending a timer, for all its owners |
//! | `run` | running a callback, and reporting on it |
//! | `shared` | a set of timers, and the handles that keep it running |
//! | `slot` | timers in memory that the caller provides |
//! | `turns` | whether the task or the driver may access a future's waker |
//! | `users` | how many timers keep a set alive, counted separately on each CPU |
//! | `waits` | which thread waits for which callback or lock, to detect deadlocks |
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
