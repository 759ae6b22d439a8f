//! Drivers, which fire timers and run their callbacks: threads, or the program's event loop.
//!
//! By default, a set of timers has a base and a driver thread for each CPU. A driver sleeps
//! until its first timer is due.
//! [`Builder::start_in_loop`](crate::Builder::start_in_loop) returns an [`EventLoopDriver`]
//! instead, which the program polls and runs. Bases are numbered from zero.

pub use crate::builder::StartTimersError;
pub use crate::event_loop::EventLoopDriver;
#[doc(inline)]
pub use crate::platform::wakeup::Wakeup;
pub use tickless_core::bases::migrate::OnlineError;
pub use tickless_core::time::CpuId;
