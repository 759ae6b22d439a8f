//! Computations over many machines: sweeps, and traces projected onto larger machines.
//!
//! The keys of the JSON output and the columns of tables are described in docs/book/src/json.md,
//! and not again at the fields.
//!
//! An error is a result too: if a computation fails, its row has the error, so that one cell of a
//! million does not end a run.

// The names of fields and variants explain them; docs/book is the documentation for users.
#![allow(missing_docs)]

pub mod project;
pub mod row;
pub mod simulate;
pub mod sweep;
