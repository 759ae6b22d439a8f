//! The laboratory: the cost of timers, measured on this machine and simulated on others.
//!
//! | module | contents |
//! |---|---|
//! | [`measure`] | measuring on this machine |
//! | [`latency`] | how late threads and timers wake |
//! | [`studies`] | comparisons of each mechanism with what it replaced, live and simulated |
//! | [`machines`] | this host as a simulated machine, and a comparison of both |
//! | [`doctor`] | which of five known timer problems this machine has, and what to do |
//! | [`report`] | all studies on one page |
//! | [`progress`] | the progress of a measurement |
//! | [`input`], [`output`] | files that a user names, and files that are written whole |
//! | [`interrupt`] | clean-up when a signal ends the program |
//! | [`text`] | formatting of figures |

#![allow(missing_docs, reason = "an internal crate: most names say what they are")]

pub mod doctor;
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

pub use measure::LabError;
