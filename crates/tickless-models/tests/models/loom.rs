//! The core's protocols between threads under loom: every schedule up to so many preemptions, and
//! every value that a load may return.
//!
//! The core runs here as it is; only its platform is the checkers' (see `checker`). Beside it
//! stand two protocols that Linux had or nearly had, each with the schedule that breaks it.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]
#![allow(dead_code, reason = "the stage is for all models")]

mod activity;
mod arming;
mod biased_lock;
mod cancelling;
mod checker;
mod deferring;
mod diagram;
mod doorbells;
mod freeing;
mod last_running;
mod offline;
mod owner;
mod permits;
#[expect(unsafe_code, reason = "models free timers to detect later accesses")]
mod place;
mod pushing_out;
mod stage;
mod temporary_heads;
mod under_loom;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod world;

/// The checker of this binary.
pub(crate) type Checked = under_loom::Loom;

/// Makes two tests of each body, one for each family of timers; bodies with three threads are
/// explored with one preemption less.
macro_rules! models {
    (shallow $($body:ident),+ $(,)?) => {
        $crate::models!(@ $crate::checker::Depth::usual().shallower(), $($body),+);
    };
    (@ $depth:expr, $($body:ident),+) => {$(
        mod $body {
            use $crate::checker::{Checker, explore};
            use $crate::under_loom::Loom;
            use tickless_core::link::{QueueLink, WheelLink};

            type Coarse = WheelLink<<Loom as Checker>::Word>;

            #[test]
            fn precise() {
                let name = concat!(stringify!($body), ", precise");
                explore::<Loom>(name, $depth, super::$body::<Loom, QueueLink>);
            }

            #[test]
            fn coarse() {
                let name = concat!(stringify!($body), ", coarse");
                explore::<Loom>(name, $depth, super::$body::<Loom, Coarse>);
            }
        }
    )+};
    ($($body:ident),+ $(,)?) => {
        $crate::models!(@ $crate::checker::Depth::usual(), $($body),+);
    };
}
pub(crate) use models;
