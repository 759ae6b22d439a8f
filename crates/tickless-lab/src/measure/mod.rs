//! Measuring on this machine: what every live study needs.
//!
//! # Ground rules
//!
//! - Before and after are measured in turn, in both orders ([`interleave`]): a disturbance
//!   affects both, and a drift cancels out.
//! - A figure is the median of its repetitions, with the least and the greatest beside it.
//! - Counts (device writes, switches, system calls) are preferred to times: a busy machine does not
//!   change them.
//! - Times stand beside what an uncontended atomic add takes in the same run ([`atomic_add_ns`]),
//!   so that a slow machine is told from slow code.
//!
//! | file | what |
//! |---|---|
//! | `interleave` | repetitions of several ways to do a thing, in turn |
//! | `spread` | median, least, greatest |
//! | `stopwatch` | short times, in nanoseconds and cycles |
//! | `cold` | caches that hold nothing of use |
//! | `usage` | CPU time and context switches |
//! | `thread_usage` | CPU time and context switches of threads, by name |
//! | `reference` | what an atomic add takes |
//! | `thread` | where a thread runs, how urgently, how exactly it sleeps |
//! | `error` | why something could not be measured, and what to do |
//! | `here` | this machine, its CPUs, how busy it is |

mod cold;
mod error;
mod here;
mod interleave;
mod reference;
mod spread;
#[expect(unsafe_code, reason = "the counter instruction")]
mod stopwatch;
mod thread;
mod thread_usage;
mod usage;

pub use cold::Evictor;
pub use error::MeasureError;
pub use here::{busy_percent, cpus, disturbance, machine, processor};
pub use interleave::interleave;
pub use reference::atomic_add_ns;
pub use spread::{Spread, mean};
pub use stopwatch::Stopwatch;
pub use thread::{be_urgent, joined, sleep_with_slack, stay_on, stay_within, wait};
pub use thread_usage::{ThreadUsage, Threads};
pub use usage::{Usage, timed};
