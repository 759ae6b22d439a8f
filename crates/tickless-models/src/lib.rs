//! Models of the protocols between threads, as tests under two model checkers.
//!
//! The core and the clocks are compiled unchanged. The models are a crate of their own, so that
//! only `ci/models.sh` builds the checkers.
