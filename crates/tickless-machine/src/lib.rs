//! A simulated machine that runs the timer core's own code on hundreds of CPUs, with a price on
//! every access.
//!
//! | file | holds |
//! |---|---|
//! | `engine`, `fiber`, `order` | fibers in virtual time; who runs next |
//! | `coherence` | cache lines |
//! | `topology`, `cost`, `fault` | what a machine is made of, what it takes, what it may do wrong |
//! | `state`, `world` | its CPUs, counters and interrupts at a moment |
//! | `act`, `deliver`, `speed` | acting on it in turn; interrupts; threads that share a core |
//! | `power` | idle states, and what CPUs and cores draw |
//! | `cpu`, `device`, `irq`, `trace` | what programs on it can do |
//! | `shared_clock` | a clock that all CPUs share, read by everybody or by one for all |
//! | `platform` | the seam to the timer core |
//! | `spec` | machines as files, every number with its source |
//! | `validate` | scenes that run on real CPUs as well, to hold the model against |

mod act;
mod coherence;
pub mod cost;
pub mod cpu;
mod deliver;
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
mod power;
mod prices;
pub mod ps;
pub mod random;
pub mod shared_clock;
pub mod spec;
mod speed;
mod state;
pub mod study;
pub mod topology;
pub mod trace;
pub mod validate;
mod world;
