//! The system layer: what the library needs of the machine and the operating system. It does not
//! know the owners of timers.
//!
//! It is internal; the public modules re-export what programs need of it.
//!
//! | file | what |
//! |---|---|
//! | `bias` | the protocol of the lock, over any world's words |
//! | [`chance`] | numbers by chance, for orders that are shuffled |
//! | [`clock`] | the monotonic clock: TSC or `clock_gettime`, or set by hand |
//! | [`clock_error`] | why a clock cannot be had or is not the best one |
//! | `comparison` | the counter beside the system's clock |
//! | `counter` | the time-stamp counter |
//! | [`cpu`] | which CPU, and so which base, the caller is on |
//! | [`device`] | what wakes a base when its next timer is due |
//! | [`driver`] | how a driver thread sleeps, and where it runs |
//! | [`expirer`] | expiry threads, for timers whose expiry is deferred |
//! | [`fork`] | telling the child of a fork from its parent |
//! | [`host`] | the core's platform, made of all this |
//! | `lock` | the lock around a base, biased towards its usual user |
//! | [`manual_clock`] | a clock that the program moves |
//! | `membarrier` | a barrier on every running thread |
//! | `parking` | where a cancel waits for a callback |
//! | [`per_process`] | one value for a process, which a fork's child makes anew |
//! | [`program_clocks`] | clocks for programs, beside the one that timers run on |
//! | `relax` | what a thread does that waits for a moment |
//! | [`system_clock`] | the system's clocks, through the vDSO |
//! | [`time_base`] | realtime and boottime |
//! | `trusted` | which counter the kernel keeps time with |
//! | `wait` | sleeping until a word changes |
//! | [`wakeup`] | how long before its deadline a driver gets up, and spins |
//! | [`watch`], `watcher` | being told when the time of day was set |
//! | [`worker`] | threads of ours, and waiting for their end |
//!
//! Files of these names in `portable/` are for systems other than Linux: from the standard library
//! alone. `cfg(linux_platform)` says which one it is; see `build.rs`.

mod bias;
pub mod chance;
pub mod clock;
pub mod clock_error;
mod comparison;
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
pub mod manual_clock;
#[cfg(linux_platform)]
mod membarrier;
mod parking;
pub mod per_process;
#[cfg(not(linux_platform))]
mod portable;
#[warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]
pub mod program_clocks;
mod relax;
#[cfg(linux_platform)]
pub mod system_clock;
pub mod time_base;
#[cfg(linux_platform)]
mod trusted;
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
