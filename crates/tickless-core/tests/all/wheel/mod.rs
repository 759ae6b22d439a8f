//! The wheel against its contract: W1 to W6, D4, D5, D7.
//!
//! `history` compares the wheel with `twin` over random histories. The other files test single
//! cases in which timer wheels have failed.

mod bed;
mod boundaries;
mod far;
mod history;
mod nodes;
mod pushing_out;
mod rounds;
mod twin;
