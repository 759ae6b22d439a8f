//! Tests of the protocols between threads, which run under two model checkers: those try every
//! interleaving of the threads.
//! They are in a crate of their own, so that only `ci/models.sh` builds the checkers.
