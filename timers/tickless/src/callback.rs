//! What a callback receives, a lock for data that it shares with other threads, and the results of
//! arming and cancelling a timer.
//!
//! A callback gets a [`Fired`](crate::Fired), with which it can rearm its timer. For data that
//! callbacks share with other threads there is [`CallbackLock`], a mutex for which cancels detect
//! deadlocks: if the callback waits for a lock that the canceller holds, the cancel returns an
//! error.

pub use crate::guarded::CallbackLock;
pub use tickless_core::bases::cancel::Cancel;
pub use tickless_core::bases::{StartError, Started};
