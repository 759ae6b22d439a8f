//! What a simulated machine consists of at a moment.
//!
//! | file | holds |
//! |---|---|
//! | `cpu` | a CPU: its clock, what it is at |
//! | `inbox` | interrupts under way to a CPU |
//! | `counter` | a counter that is read one at a time |
//! | `timeline` | what happened when |

pub mod counter;
pub mod cpu;
pub mod inbox;
pub mod timeline;
