//! The clocks under a model checker: every schedule up to so many preemptions, and every value
//! that a load may return (loom).
//!
//! `cargo test` explores little, so that it stays quick; with `TICKLESS_MODELS=deep`, as in
//! `ci/models.sh`, the bounds are those that the models ask for, and with `LOOM_MAX_PREEMPTIONS`
//! what that says. What was broken to see
//! each of them fail stands in `docs/mutations.md`.

mod combined;
mod line;
mod skew;
mod takeover;
mod timekeeper;
mod world;
