//! Tests of the protocols between threads, which run under two model checkers: those try every
//! interleaving of the threads.
//!
//! They compile the code of the timer library and of its clocks unchanged. They are in a crate of
//! their own, so that only `ci/models.sh` builds the checkers.
