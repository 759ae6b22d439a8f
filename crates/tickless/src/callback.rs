//! What callbacks are told, what they share with the rest of a program, and what arming and
//! cancelling say about them.
//!
//! A callback gets a [`Fired`], by which it can have its timer armed again. What it shares with
//! other threads may stand in a [`CallbackLock`]: a mutex that cancels know of, so that waiting for
//! a callback which waits for a lock of one's own is an error and no deadlock.
//!
//! ```
//! use std::time::Duration;
//! use tickless::VirtualTime;
//! use tickless::callback::Cancel;
//!
//! let time = VirtualTime::new();
//! let mut left = 3;
//! let retry = time.timers().hrtimer(move |fired| {
//!     left -= 1;
//!     if left > 0 {
//!         fired.restart(Duration::from_secs(1));
//!     }
//! });
//! retry.start(Duration::from_secs(1))?;
//! time.advance(Duration::from_secs(2));
//! assert_eq!(retry.cancel(), Cancel::Pending, "one more was to come");
//! # Ok::<(), tickless::callback::StartError>(())
//! ```

pub use crate::guarded::{CallbackLock, CallbackLockGuard};
pub use crate::timer::cancel_error::CancelError;
pub use crate::timer::fired::Fired;
pub use tickless_core::bases::cancel::Cancel;
pub use tickless_core::bases::{StartError, Started};
