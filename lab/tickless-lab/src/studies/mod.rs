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
//! *Predicted* cells are results that no parameter was fitted to. If such a cell has a *band*,
//! which is the range in which a correct result should lie, it is judged right or wrong; a cell
//! that is wrong is kept and shown as wrong. A cell is *implied* if a formula gives its figure from
//! the same parameters: such a figure proves nothing about the simulation.
//!
//! Each mechanism has a *switch*, with one setting for the replaced behaviour and one for the
//! mechanism: the two *sides* of a comparison ([`Sides`]). Both sides run the same code, and only
//! this setting differs. A cell must be judged right only because of that difference. Tests check
//! this rule: they run each study with the same setting on both sides ([`Sides::broken`]), and then
//! no cell is allowed to be right.
//!
//! # To add a study
//!
//! Make a folder with a `pub const STUDY` of type [`Study`], and add it to [`STUDIES`]. The command
//! line, the report, the book's table, the doctor and `tickless sweep` (studies over many machines
//! and seeds) read that list. In each folder, `model` has the workload on a simulated machine, its
//! cells with their roles and bands; `sim` the simulated run, with its plots, unless
//! it is short; `live` the run on this machine; `report.txt` the published report's tables, with
//! our figures next to its own, and the notes and answers of both runs; `doctor` the checks that
//! find the mechanism's problem on this machine.

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
