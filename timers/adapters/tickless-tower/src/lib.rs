//! tower's timeout and rate limit on Tickless timers, and deadlines in headers.
//!
//! ```
//! use std::time::Duration;
//! use tickless::future::TimerSource;
//! use tickless_tower::{RateLimitLayer, TimeoutLayer};
//! use tower::ServiceBuilder;
//!
//! let timers = TimerSource::process()?;
//! let layers = ServiceBuilder::new()
//!     .layer(TimeoutLayer::new(&timers, Duration::from_secs(30)))
//!     .layer(RateLimitLayer::new(&timers, 100, Duration::from_secs(1))?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | tower | here |
//! |---|---|
//! | `timeout::TimeoutLayer` | [`TimeoutLayer`]; its error is tower's own `Elapsed` |
//! | `limit::RateLimitLayer` | [`RateLimitLayer`] |
//! | `retry::backoff` | `timers.sleep(pause)`, as the future of a `retry::Policy` |
//! | | [`DeadlineLayer`], for the deadline of a request in a header |
//!
//! They behave as tower's do, without tokio's 1 ms floor, and work outside tokio too. With
//! `&VirtualTime` as their timers, minutes of timeouts take milliseconds.

mod deadline;
mod rate_limit;
mod timeout;

pub use deadline::{Deadline, DeadlineFuture, DeadlineLayer};
pub use rate_limit::{InvalidRate, RateLimit, RateLimitLayer};
pub use tickless_http::{DeadlineHeader, NoTimeLeft};
pub use timeout::{ResponseFuture, Timeout, TimeoutLayer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
