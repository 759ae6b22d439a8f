//! Who owns a timer and its callback, and what they have in common with all of their set.
//!
//! | file | what |
//! |---|---|
//! | `arena` | the memory that timers live in |
//! | `cancel_error` | why a cancel that waits did not wait to the end |
//! | `clock_timers` | the timers of a set that are on clocks of their own |
//! | `counters` | what is counted beside the bases: cancels, and how long callbacks take |
//! | `drive` | what drivers, expiry threads and event loops do |
//! | `ends` | when the memory of a timer may go |
//! | `entry` | a timer inside a future |
//! | `fired` | what a callback is told, and what it may ask for |
//! | `frame` | which callbacks the calling thread is in |
//! | `glue` | what the core carries for each timer |
//! | `inline` | a timer with its callback inside a struct of the program's |
//! | `notes` | what is known of single timers beside their memory: labels, where they were armed |
//! | `orphans` | timers that were dropped while their callback ran |
//! | `owned` | a timer with its callback in one allocation |
//! | `pinned` | arming, cancelling and ending a timer, whoever has its memory |
//! | `run` | running a callback, and telling of it |
//! | `shared` | a set of timers, and who keeps it running |
//! | `slot` | timers in memory that somebody else owns |
//! | `turns` | who may touch the waker of a timer inside a future |
//! | `waits` | who waits for whom, which tells a wait from a deadlock |
//! | `wakers` | wakers that a batch of callbacks leaves to be woken |

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
pub(crate) mod waits;
pub(crate) mod wakers;
