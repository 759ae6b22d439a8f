//! Linux's timer subsystem for programs.
//!
//! As in the kernel, there are two families of timers:
//! - [`Timeout`] is *coarse*, on a timer wheel. Arming, cancelling and *pushing out* (moving the
//!   deadline to a later time) take a handful of nanoseconds, however many timers are pending. It
//!   never fires early, and is late by at most 13 % of the armed duration plus a tick. It is made
//!   for timeouts, which are pushed out all the time and seldom fire.
//! - [`HrTimer`] is *precise*, in a sorted queue. It can take a window instead of a point in time,
//!   so that expiries share wakeups. [`Periodic`] is a precise timer with a period.
//!
//! ```
//! use std::time::Duration;
//!
//! let timers = tickless::Timers::process()?;
//! let (tx, rx) = std::sync::mpsc::channel();
//! let idle = timers.timeout(move |_| tx.send("closing").unwrap_or(()));
//! idle.start(Duration::from_millis(5))?; // arm, or push out
//! assert_eq!(rx.recv(), Ok("closing"));
//! assert_ne!(idle.cancel(), tickless::callback::Cancel::Pending);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to find things
//!
//! | you want | see |
//! |---|---|
//! | timers in async code | [`future`] |
//! | a deadline for everything that is done for a request | [`future::deadline_scope`] |
//! | to test code that waits | [`VirtualTime`], [`virtual_time`] |
//! | timers inside your own structs, without allocations | [`embed`] |
//! | timers of one thread, in its event loop | [`LocalTimers`], [`local`] |
//! | sleeps of tasks that stay on one thread | [`local::future`] |
//! | timers of all threads, in an event loop | [`driver`] |
//! | periods, and phases that spread them | [`periodic`] |
//! | rate limits, and quotas of CPU time | [`bandwidth`] |
//! | wall-clock deadlines, or deadlines that count suspended time | [`clock::ClockTimer`] |
//! | points in time, and conversions from and to `std` | [`time`] |
//! | what arming and cancelling return, and what a callback receives | [`callback`] |
//! | counters, lists of pending timers, leaks | [`stats`] |
//! | clocks other than the timers' own | [`clock`] |
//!
//! # Callbacks
//!
//! A [`Timers`] has one base per CPU, and one driver thread per base that is used, which sleeps
//! until something is due. Callbacks run on driver threads, one at a time per base, and should be
//! short: a callback that blocks delays the timers of its own base and no others. A panic of a
//! callback is caught and counted.
//!
//! Dropping a timer cancels it and waits until its callback has returned, so do not drop one while
//! you hold a lock that its callback takes. A drop inside a callback does not wait. A callback that
//! owns its own timer keeps itself alive until it drops the timer.
//!
//! # Features
//!
//! All are off by default.
//!
//! | feature | adds |
//! |---|---|
//! | `tracing` | events for slow callbacks, overdue expiries, panics, and single timers |
//! | `metrics` | `Timers::publish_metrics`: the statistics for the `metrics` facade |
//! | `tokio-time` | `tokio_time`: the names of `tokio::time`; tokio's runtime drives the timers |
//! | `tokio-test-util` | `pause`, `resume` and `advance` of `tokio_time`, for tokio's clock |
//! | `tls-descriptors` | faster calls of a shared library for C; not for a Rust `dylib` |

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc, missing_debug_implementations)]

pub mod bandwidth;
#[cfg(doctest)]
mod book;
mod builder;
pub mod callback;
pub mod clock;
mod clock_timer;
pub mod driver;
pub mod embed;
mod event_loop;
mod events;
pub mod future;
mod guarded;
mod hrtimer;
pub mod local;
mod methods;
pub mod periodic;
#[expect(unsafe_code, reason = "system calls and counter instructions")]
mod platform;
#[cfg(feature = "policy")]
#[doc(hidden)]
pub mod policy;
mod process;
#[doc(hidden)]
#[expect(unsafe_code, reason = "the caller owns the memory of a slot")]
pub mod slots;
pub mod stats;
pub mod time;
mod timeout;
#[expect(unsafe_code, reason = "the owner of a timer frees it")]
mod timer;
mod timers;
#[cfg(feature = "tokio-time")]
mod tokio_runtime;
#[cfg(feature = "tokio-time")]
pub mod tokio_time;
pub mod virtual_time;

// The names that most programs need. To keep the crate's root small, these names and the public
// modules above are at most twenty, not counting optional features.
pub use builder::Builder;
pub use hrtimer::HrTimer;
pub use periodic::Periodic;
pub use tickless_core::local::LocalTimers;
pub use timeout::Timeout;
pub use timer::cancel_error::CancelError;
pub use timer::fired::Fired;
pub use timers::Timers;
pub use virtual_time::VirtualTime;
