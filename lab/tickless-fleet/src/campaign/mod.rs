//! A campaign: a file that requests many computations, each of which is a *cell*.
//!
//! A campaign's file has a table for each kind of computation, which names values for its
//! parameters (*axes*). The cells of a table are all combinations of these values. No list of
//! cells is stored: a cell is derived from its number when it is needed, so a campaign of 10^9
//! cells takes as little memory as one of ten.

mod axes;
pub(crate) mod cell;
mod error;
mod numbers;
mod plan;

pub use cell::{Cell, Key, Kind, StudyName};
pub use error::CampaignError;
pub use numbers::Numbers;
pub use plan::{Plan, VERSION};
