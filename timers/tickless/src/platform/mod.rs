//! The operating-system layer: clocks, event devices, locks and threads of this machine. It uses
//! nothing of the modules that own timers. Three words are used everywhere here: a *base* holds the
//! timers of one CPU; an *event device* wakes a base when its first timer is due; a *driver* is the
//! thread that waits for the device and then runs the timers.
//!
//! The module is internal; public modules re-export what programs need from it. On systems other
//! than Linux, a file in `portable/` replaces the file of the same name here, and uses the standard
//! library alone. `cfg(linux_platform)` selects one of the two; see `build.rs`.

pub mod bias;
pub mod chance;
pub mod clock;
pub mod clock_error;
mod comparison;
pub mod coop;
mod counter;
#[cfg(linux_platform)]
pub mod cpu;
pub mod device;
#[cfg(linux_platform)]
pub mod driver;
pub mod expirer;
pub mod fork;
pub mod host;
mod lock;
pub mod locked;
pub mod manual_clock;
#[cfg(linux_platform)]
mod membarrier;
pub mod per_process;
#[cfg(not(linux_platform))]
mod portable;
#[warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]
pub mod program_clocks;
pub mod relax;
pub mod runtime;
#[cfg(linux_platform)]
pub mod system_clock;
mod thread;
mod thread_word;
pub mod time_base;
pub mod try_lock;
#[cfg(linux_platform)]
mod wait;
pub mod wakeup;
pub mod watch;
#[cfg(linux_platform)]
pub mod watcher;
pub mod worker;

#[cfg(not(linux_platform))]
pub use portable::{cpu, driver, system_clock};
#[cfg(not(linux_platform))]
use portable::{membarrier, wait};
