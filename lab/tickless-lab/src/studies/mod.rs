//! The studies: each compares a timer mechanism with the behaviour that it replaced, and shows what
//! the mechanism is worth.
//!
//! A study measures on this machine (*live*) or on a simulated one (*sim*) and returns a
//! [`StudyResult`]: *cells*, each of which is one figure with a name, a unit and its origin; and
//! answers to questions that the published report left open. The published report is the text that
//! introduced the mechanism, such as a kernel patch or a paper, with measurements from other
//! machines.
//!
//! # Rules
//!
//! A parameter of a simulated machine is only fitted to cells that are marked as *calibrated*.
//! *Predicted* cells are results that no parameter was fitted to. `cell.rs` says when one is judged
//! right or wrong, or is implied; a cell that is wrong is kept and shown as wrong.
//!
//! Each mechanism has a *switch*, with one setting for the replaced behaviour and one for the
//! mechanism: the two *sides* of a comparison ([`Sides`]). Both sides run the same code, and only
//! this setting differs. A cell must be judged right only because of that difference. Tests check
//! this rule: they run each study with the same setting on both sides ([`Sides::broken`]), and then
//! no cell is allowed to be right.
//!
//! The file of a study has the simulated run. In its folder, `model` has the workload on a
//! simulated machine, its cells with their roles and bands; `live` the run here; `report.txt` the
//! texts; `doctor` the checks. docs/dev/hacking.md says how to add a study.

pub mod cancel;
mod cell;
pub mod clock;
pub mod deferred;
mod fit;
mod list;
pub mod phase;
pub mod plot;
pub mod published;
pub mod rearm;
mod report_text;
mod request;
mod result;
pub mod schedule;
mod sim;
mod study;

pub use cell::{Band, Cell, Claim, Role, Scale, claim, wanted};
pub use fit::{Sensitivity, fitted, sensitivity};
pub use list::{STUDIES, checks};
pub use plot::Plot;
pub use request::{Request, World};
pub use result::{Answer, Column, Exhibit, Grid, StudyResult, grids};
pub use study::{Runner, Sides, Study};
