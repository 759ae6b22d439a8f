//! Models of the core's protocols between threads. Each is written once for both checkers.
//!
//! The core is compiled unchanged; its platform consists of a checker's words and locks
//! (`platform`). Models of the library compile its files over the checkers' words.
//!
//! A model is plain code that runs again for every schedule. Runs must not share state, except for
//! counts that are read at the end of the test; otherwise a checker would explore something else.
//! The tests of each checker are a binary of their own (`loom.rs`, `shuttle.rs`), because each
//! checker installs a panic hook in its process.
//!
//! `cargo test` explores little, so that it is quick. `TICKLESS_MODELS=deep` selects the bounds of
//! `ci/models.sh`, and `LOOM_MAX_PREEMPTIONS` overrides loom's.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]
#![allow(dead_code, reason = "some helpers are used with one checker only")]

mod activity;
mod arming;
mod biased_lock;
mod cancelling;
mod cpu_locks;
mod deferring;
mod doorbells;
pub mod exploring;
mod freeing;
mod offline;
mod owner;
mod permits;
#[expect(unsafe_code, reason = "models free timers to detect later accesses")]
mod place;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod platform;
mod pushing_out;
mod set_users;
mod stage;
pub mod word;

/// Makes two tests of each model, for coarse and precise timers. `shallow`: three threads.
macro_rules! models {
    (shallow $($model:ident),+ $(,)?) => {
        $crate::models::models!(
            @ $crate::models::exploring::Depth::full().shallower(), $($model),+
        );
    };
    (@ $depth:expr, $($model:ident),+) => {$(
        mod $model {
            use $crate::checker::CheckedWord;
            use $crate::models::exploring::explore;
            use tickless_core::link::{QueueLink, WheelLink};

            #[test]
            fn precise() {
                let name = concat!(stringify!($model), ", precise");
                explore(name, $depth, super::$model::<QueueLink>);
            }

            #[test]
            fn coarse() {
                let model = super::$model::<WheelLink<CheckedWord>>;
                explore(concat!(stringify!($model), ", coarse"), $depth, model);
            }
        }
    )+};
    ($($model:ident),+ $(,)?) => {
        $crate::models::models!(@ $crate::models::exploring::Depth::full(), $($model),+);
    };
}
use models;
