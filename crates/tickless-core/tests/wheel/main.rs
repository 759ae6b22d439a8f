//! The wheel against its contract: W1 to W6, D4, D5, D7.
//!
//! `twin` says what is right, `history` compares the wheel with it over random histories, and
//! the rest are the places where wheels have been wrong before, one by one.

mod history;
mod nodes;
mod twin;
