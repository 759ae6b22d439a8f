//! `tickless report`: its command line, and where the page went.

pub mod args;
