//! A simulated machine that runs the timer core's own code on hundreds of CPUs, with a price on
//! every access.
//!
//! | file | holds |
//! |---|---|
//! | `engine`, `fiber`, `order` | fibers in virtual time; who runs next |
//! | `coherence` | cache lines |
//! | `topology`, `cpu`, `device`, `irq`, `cost` | what a machine is made of |
//! | `fault`, `trace` | what it may do wrong; what it did, for a trace viewer |
//! | `platform` | the seam to the timer core |
//! | `spec` | machines as files, every number with its source |
//! | `validate` | scenes that run on real CPUs as well, to hold the model against |

mod coherence;
pub mod cost;
pub mod cpu;
pub mod device;
pub mod engine;
pub mod fault;
mod fiber;
pub mod fuzz;
pub mod irq;
mod keys;
pub mod machines;
mod order;
pub mod os;
pub mod platform;
pub mod ps;
pub mod random;
pub mod spec;
pub mod study;
pub mod topology;
pub mod trace;
pub mod validate;
mod world;
