//! The operating-system layer: clocks, event devices, locks and threads of this machine. It uses
//! nothing of the modules that own timers. Three words are used everywhere here: a *base* holds the
//! timers of one CPU; an *event device* wakes a base when its first timer is due; a *driver* is the
//! thread that waits for the device and then runs the timers.
//!
//! The module is internal; public modules re-export what programs need from it.
//!
//! | file | what |
//! |---|---|
//! | `bias` | the protocol of the biased lock, generic over the atomic words |
//! | [`chance`] | a seeded stream of random numbers |
//! | [`clock`] | the monotonic clock: TSC, `clock_gettime`, or moved by the program |
//! | [`clock_error`] | why a clock cannot be opened, or a fallback is used |
//! | `comparison` | readings of the counter paired with readings of the system's clock |
//! | `counter` | the CPU's counter: the TSC on x86-64 |
//! | [`cpu`] | the CPU, and so the base, that the caller runs on |
//! | [`device`] | event devices, which wake a base when its next timer is due |
//! | [`driver`] | the timer slack and CPU affinity of driver threads |
//! | [`expirer`] | expiry threads, which run callbacks in place of the driver |
//! | [`fork`] | detection of a forked child |
//! | [`host`] | the implementation of the `Platform` trait of `tickless_core` |
//! | `lock` | the lock around a base, biased towards one thread |
//! | [`manual_clock`] | a clock that the program moves |
//! | `membarrier` | a memory barrier on every running thread |
//! | `parking` | how a synchronous cancel sleeps until a callback has returned |
//! | [`per_process`] | one value per process, which a forked child creates again |
//! | [`program_clocks`] | clocks that programs can use, apart from the one that timers run on |
//! | `relax` | the back-off of a short wait: spin, yield, sleep |
//! | [`runtime`] | what timers need of an asynchronous runtime that runs them |
//! | [`system_clock`] | the system's clocks, through the vDSO |
//! | [`time_base`] | the clocks that deadlines may be given on |
//! | `trusted` | which counter the kernel keeps time with |
//! | `try_lock` | a lock that a thread takes only if it is free |
//! | `wait` | sleeping until an atomic word changes |
//! | [`wakeup`] | how long before its deadline a driver wakes, and spins |
//! | [`watch`], `watcher` | notice when the wall clock is set |
//! | [`worker`] | the library's threads, and waiting until they end |
//!
//! On systems other than Linux, a file in `portable/` replaces the file of the same name here, and
//! uses the standard library alone. `cfg(linux_platform)` selects one of the two; see `build.rs`.

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
pub mod relax;
pub mod runtime;
#[cfg(linux_platform)]
pub mod system_clock;
pub mod time_base;
#[cfg(linux_platform)]
mod trusted;
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
