//! Counts which processes and which kernel callbacks use timers, and what that costs, live.
//!
//! eBPF programs count in the kernel, by these rules:
//! - An arming counts for the process that the CPU runs. In an interrupt that can be any process,
//!   so the arming counts for the process that last armed this timer, or for the kernel if no
//!   process has armed it. The kernel's periodic tick counts for the kernel.
//! - The cancel or expiry of a timer counts for the process that armed it.
//! - A removal is no cancel if the next timer event on that CPU arms or expires the same timer: the
//!   kernel removes a pending timer before it arms the timer again, or expires it.
//! - A write to a CPU's timer device counts for the timer that changed last on that CPU.
//! - When a timer interrupt wakes an idle CPU, the wakeup counts for the first timer that expires
//!   in this interrupt. If that timer is the tick, and a coarse timer expires with the tick, the
//!   wakeup counts for the coarse timer.
//!
//! The output shows what was not counted because a table in the kernel was full, and how much CPU
//! time the counting itself took. Nothing remains in the kernel, however the program ends: eBPF
//! programs end with the process that loaded them.

#![allow(
    missing_docs,
    reason = "internal: names speak for fields, and docs/book/src/json.md explains the JSON"
)]

mod ebpf;
mod error;
pub mod snapshot;
pub mod table;

pub use ebpf::Ebpf;
pub use error::CountError;
