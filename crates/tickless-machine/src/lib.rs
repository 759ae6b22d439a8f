//! A simulated machine that runs the timer core's own code on hundreds of CPUs, with a price on
//! every access.
//!
//! | file | holds |
//! |---|---|
//! | `engine`, `fiber`, `order` | fibers in virtual time; which CPU acts next |
//! | `coherence` | cache lines |
//! | `topology`, `cost`, `fault` | a machine's parts, its prices, its faults |
//! | `machine_state`, `state` | the state of its CPUs, counters and interrupts |
//! | `act`, `deliver`, `speed` | actions in turn; interrupts; threads that share a core |
//! | `power` | idle states, and the power of CPUs and cores |
//! | `cpu`, `device`, `irq`, `trace` | what programs on it can do |
//! | `shared_clock` | a clock that all CPUs share |
//! | `platform` | the timer core's platform |
//! | `spec`, `prices`, `size` | machine files, each number with its source; other sizes |
//! | `validate` | scenes that also run on real CPUs, to compare the model with |

mod act;
mod coherence;
pub mod cost;
pub mod cpu;
mod deliver;
pub mod device;
pub mod engine;
pub mod fault;
#[expect(unsafe_code, reason = "a fiber suspends itself through a pointer")]
mod fiber;
pub mod fuzz;
pub mod irq;
mod machine_state;
pub mod machines;
mod order;
pub mod os;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
pub mod platform;
mod power;
mod prices;
pub mod ps;
pub mod random;
pub mod shared_clock;
pub mod size;
pub mod spec;
mod speed;
mod state;
pub mod topology;
pub mod trace;
pub mod validate;
