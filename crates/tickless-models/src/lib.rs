//! The protocols between threads, under two model checkers: the tests of this crate.
//!
//! The core and the clocks run here as they are; only their platform is the checkers'. A crate of
//! its own, so that nobody waits for the checkers who does not run them: `ci/models.sh` does.
