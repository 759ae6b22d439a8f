//! Many machines and many traces: campaigns, projections, fleets.
//!
//! | module | what |
//! |---|---|
//! | [`campaign`] | a campaign's file, and the cells that are its product |
//! | [`fleet`] | what many traces say as a whole: quantiles, and the machines that differ |
//! | [`row`] | one figure of one cell, and the table of them as CSV or Parquet |
//! | [`perform`] | what one cell comes to |
//! | [`project`] | a trace on a simulated machine |
//! | [`sweep`] | performs what is missing of a campaign in a folder; merges folders |
//!
//! Everything that can go wrong is a value. A cell that fails is a row with its error, so that one
//! damaged trace of a million ends nothing.

pub mod campaign;
pub mod fleet;
pub mod perform;
pub mod project;
pub mod row;
pub mod sweep;
