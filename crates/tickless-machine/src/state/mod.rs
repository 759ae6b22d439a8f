//! The parts of a simulated machine's state.
//!
//! | file | holds |
//! |---|---|
//! | `cpu` | a CPU: its clock, its mode, its statistics |
//! | `inbox` | interrupts in flight to a CPU |
//! | `timeline` | the events of a recorded run |

pub mod cpu;
pub mod inbox;
pub mod timeline;
