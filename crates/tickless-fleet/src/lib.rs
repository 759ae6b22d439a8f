//! Many machines and many traces: campaigns, projections, fleets.
//!
//! | module | what |
//! |---|---|
//! | [`campaign`] | a campaign's file, and the cells that are its product |
//! | [`fleet`] | a summary of many traces: quantiles, and the machines that differ |
//! | [`row`] | one figure of one cell, and the table of them as CSV or Parquet |
//! | [`perform`] | the computation of one cell |
//! | [`project`] | a trace on a simulated machine |
//! | [`sweep`] | performs the missing cells of a campaign in a folder; merges folders |
//!
//! Errors are values. A cell that fails is a row with its error, so one damaged trace of a million
//! does not end a run.

pub mod campaign;
pub mod fleet;
pub mod perform;
pub mod project;
pub mod row;
pub mod sweep;
