//! Drivers, which fire timers and run their callbacks: threads, or the program's event loop.
//!
//! By default, a set of timers has a base and a driver thread for each CPU. A driver sleeps in a
//! [`Device`] until its first timer is due. A program with an event loop needs no driver threads:
//! [`Builder::start_in_loop`](crate::Builder::start_in_loop) returns an [`EventLoopDriver`] to poll
//! and run.
//!
//! Bases are numbered from zero, as [`CpuId`]s; [`Timers::offline`](crate::Timers::offline) takes a
//! base out of use and moves its timers.

pub use crate::builder::StartTimersError;
pub use crate::event_loop::EventLoopDriver;
#[doc(inline)]
pub use crate::platform::device::fallback::Device;
#[doc(inline)]
pub use crate::platform::wakeup::Wakeup;
pub use tickless_core::bases::migrate::OnlineError;
pub use tickless_core::time::CpuId;
