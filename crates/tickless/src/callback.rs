//! What a callback receives, a lock for data that it shares with other threads, and the results of
//! arming and cancelling a timer.
//!
//! A callback gets a [`Fired`], with which it can rearm its timer. For data that callbacks share
//! with other threads there is [`CallbackLock`], a mutex for which cancels detect deadlocks: if the
//! callback waits for a lock that the canceller holds, the cancel returns an error.
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

pub use crate::guarded::CallbackLock;
pub use crate::timer::cancel_error::CancelError;
pub use crate::timer::fired::Fired;
pub use tickless_core::bases::cancel::Cancel;
pub use tickless_core::bases::{StartError, Started};
