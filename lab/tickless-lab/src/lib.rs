//! The laboratory: the cost of timers, measured on this machine and simulated on others.
//!
//! | module | contents |
//! |---|---|
//! | [`measure`] | measuring on this machine |
//! | [`latency`] | how late threads and timers wake |
//! | [`studies`] | comparisons of each mechanism with what it replaced, live and simulated |
//! | [`machines`] | the simulated machines, and this host as one of them |
//! | [`doctor`] | which of five known timer problems this machine has, and what to do |
//! | [`report`] | all studies on one page |
//! | [`effort`], [`progress`] | how long a measurement may take, and how far it is |
//! | [`input`], [`output`] | files that a user names, and files that are written whole |
//! | [`interrupt`] | clean-up when a signal ends the program |
//! | [`text`] | formatting of figures |

#![allow(missing_docs, reason = "an internal crate: most names say what they are")]

pub mod doctor;
pub mod effort;
mod error;
pub mod input;
pub mod interrupt;
pub mod latency;
pub mod machines;
pub mod measure;
pub mod output;
pub mod progress;
pub mod report;
pub mod studies;
pub mod text;

pub use error::LabError;
