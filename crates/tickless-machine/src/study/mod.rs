//! The five studies on simulated machines: cells, each with its role.
//!
//! Rules, from the plan of the studies: a parameter is only ever set from a cell that is
//! *calibrated*; cells that are *predicted* come out by themselves, inside their band or not;
//! "after" comes out of the same code as "before", with one switch changed.

pub mod cancel;
mod cell;
pub mod clock;
pub mod deferred;
pub mod phase;
pub mod rearm;
mod sweep;

pub use cell::{Band, Cell, Figure, Role};
pub use sweep::{Sensitivity, sensitivity};
