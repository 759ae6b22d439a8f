//! Computations over many machines and many recorded traces: campaigns, projections, fleets.
//!
//! | module | what |
//! |---|---|
//! | [`campaign`] | the file of a campaign, and the computations (cells) that it requests |
//! | [`fleet`] | a summary of many machines' traces: quantiles, and the machines that differ |
//! | [`row`] | one result of one cell, and the table of results as CSV or Parquet |
//! | [`perform`] | the computation of one cell |
//! | [`project`] | runs the timer operations of a trace on a simulated machine |
//! | [`sweep`] | computes the missing cells of a campaign into a folder; merges folders |
//!
//! The keys of the JSON output and the columns of tables are described in docs/book/src/json.md, and
//! not again at the fields.
//!
//! An error is a result too: the row of a cell that fails has the error, so that one damaged trace
//! of a million does not end a run.

// The names of fields and variants say what they are; docs/book is the documentation for users.
#![allow(missing_docs)]

pub mod campaign;
pub mod fleet;
pub mod perform;
pub mod project;
pub mod row;
pub mod sweep;
