//! The types that own a timer and its callback, and the state that all timers of a set share. A set
//! of timers has its own bases, one for each CPU, and its own drivers, which fire the timers.

pub(crate) mod ambient;
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
