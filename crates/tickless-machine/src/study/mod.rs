//! The five studies on simulated machines: cells, each with its role.
//!
//! Rules, from the plan of the studies: a parameter is only ever set from a cell that is
//! *calibrated*; cells that are *predicted* come out by themselves, inside their band or not;
//! what a formula gives as well is *implied* and proves nothing; "after" comes out of the same
//! code as "before", with one switch changed. A cell has a verdict only if it loses it when that
//! switch is broken: tests give each study the same setting twice ([`Sides::broken`]).
//!
//! | file | holds |
//! |---|---|
//! | `cell` | a figure, its role, what it claims, its score |
//! | `fit` | numbers set from calibrated cells, again after another one has moved |
//! | `size` | machines of the same kind with more or fewer CPUs |
//! | `sweep` | what assumed numbers do to predicted cells |
//! | `schedule` | a prediction that nothing is published beside |
//! | `rearm`, `clock`, `cancel`, `deferred`, `phase` | the studies |

pub mod cancel;
mod cell;
pub mod clock;
pub mod deferred;
mod fit;
pub mod phase;
pub mod rearm;
pub mod schedule;
mod size;
mod sweep;

pub use cell::{Band, Cell, Claim, Figure, Role, Scale};
pub use fit::fitted;
pub use size::{Sized, sized};
pub use sweep::{Sensitivity, sensitivity};

/// The two settings of a mechanism's switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides<T> {
    /// Without the mechanism.
    pub before: T,
    /// With it.
    pub after: T,
}

impl<T: Copy> Sides<T> {
    /// A switch that does nothing: both sides are as after. No cell may keep its verdict.
    #[must_use]
    pub const fn broken(self) -> Sides<T> {
        Sides { before: self.after, after: self.after }
    }
}
