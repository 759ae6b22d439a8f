//! The laboratory: the cost of timers, measured on this machine and simulated on others.
//!
//! | module | what |
//! |---|---|
//! | [`measure`] | measuring on this machine |
//! | [`latency`] | how late threads and timers wake |
//! | [`studies`] | each mechanism beside what it replaced, live and simulated |
//! | [`machines`] | this host as a simulated machine, and predictions held against it |
//! | [`doctor`] | which of five known costs this machine pays, and what to do |
//! | [`report`] | all studies on one page |
//! | [`progress`] | the progress of a measurement |
//! | [`interrupt`] | clean-up when a signal ends the program |
//! | [`text`] | figures as text |

pub mod doctor;
pub mod input;
pub mod interrupt;
pub mod latency;
pub mod machines;
pub mod measure;
pub mod progress;
pub mod report;
pub mod studies;
pub mod text;
