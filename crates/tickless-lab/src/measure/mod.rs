//! Tools for measuring on this machine, which every live study uses.
//!
//! # Ground rules
//!
//! - Variants are measured in turn, and the order alternates ([`interleave`]): a disturbance
//!   affects all of them, and a drift cancels out.
//! - A figure is the median of its repetitions, with the least and the greatest beside it.
//! - Counts (device writes, switches, system calls) are preferred to times: a busy machine does not
//!   change them.
//! - Times are shown next to the time of an uncontended atomic add in the same run
//!   ([`atomic_add_ns`]), so that a reader can tell a slow machine from slow code.
//!
//! | file | contents |
//! |---|---|
//! | `interleave` | repetitions of several variants, in turn |
//! | `spread` | median, least, greatest |
//! | `stopwatch` | short times, in nanoseconds and cycles |
//! | `cold` | eviction of everything from the caches |
//! | `usage` | CPU time and context switches of the process |
//! | `thread_usage` | CPU time and context switches of threads, by name |
//! | `reference` | the time of an atomic add |
//! | `thread` | a thread's CPU, its priority, its timer slack |
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
