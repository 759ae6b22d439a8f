//! The wheel against its contract: W1 to W6, D4, D5, D7.
//!
//! `twin` says what is right and `history` compares the wheel with it over random histories.
//! The others visit, one by one, the places where wheels have been wrong before.

mod bed;
mod boundaries;
mod far;
mod history;
mod nodes;
mod pushing_out;
mod rounds;
mod twin;
