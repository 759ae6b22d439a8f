//! Runs programs in virtual time, and checks what they see.
//!
//! Most tests are such programs themselves: `harness::inside` runs a test again in virtual time, by
//! `examples/warp.rs`.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]
#![allow(unsafe_code, reason = "the programs make system calls with odd arguments")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "their arguments are locals")]
#![allow(clippy::disallowed_methods, reason = "sleeping is what is tested")]

mod calls;
mod harness;
mod inputs;
mod native;
mod signals;
mod timers;
mod work;
