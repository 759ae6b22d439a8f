//! A simulated machine that runs the timer library's real code on hundreds of simulated CPUs. Every
//! memory access takes as much simulated time as on the real machine that it models.
//!
//! | file | holds |
//! |---|---|
//! | `engine`, `fiber`, `order` | fibers in virtual time; which CPU acts next |
//! | `coherence` | cache lines |
//! | `topology`, `cost`, `fault` | sockets and cores; durations (prices); faults |
//! | `machine_state`, `cpu_state` | the state of its CPUs, counter and interrupts |
//! | `act` | actions in the order of the clocks |
//! | `power` | idle states, power, and the speed of SMT threads |
//! | `cpu`, `device`, `irq` | the functions that programs on the machine call |
//! | `shared_clock`, `counter_clock` | a clock that all CPUs share; one over the CPU's counter |
//! | `platform` | what the timer library needs from a platform, on the simulated machine |
//! | `spec`, `size` | machine files, each number with its source; other numbers of CPUs |

#![allow(missing_docs, reason = "an internal crate: most names say what they are")]

mod act;
mod coherence;
pub mod cost;
mod counter_clock;
pub mod cpu;
mod cpu_state;
pub mod device;
pub mod engine;
pub mod fault;
#[expect(unsafe_code, reason = "a fiber suspends itself through a pointer")]
mod fiber;
pub mod irq;
mod machine_state;
pub mod machines;
mod order;
pub mod os;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
pub mod platform;
mod power;
pub mod ps;
pub mod random;
pub mod shared_clock;
pub mod size;
pub mod spec;
pub mod topology;
