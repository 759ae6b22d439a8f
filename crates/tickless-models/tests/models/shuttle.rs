//! The core's protocols between threads under shuttle: many random schedules. See `loom.rs`.

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
mod under_shuttle;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod world;

/// The checker of this binary.
pub(crate) type Checked = under_shuttle::Shuttle;

/// Makes two tests of each body, one for each family of timers; bodies with three threads are
/// explored with one preemption less.
macro_rules! models {
    (shallow $($body:ident),+ $(,)?) => {
        $crate::models!(@ $crate::checker::Depth::usual().shallower(), $($body),+);
    };
    (@ $depth:expr, $($body:ident),+) => {$(
        mod $body {
            use $crate::checker::{Checker, explore};
            use $crate::under_shuttle::Shuttle;
            use tickless_core::link::{QueueLink, WheelLink};

            type Coarse = WheelLink<<Shuttle as Checker>::Word>;

            #[test]
            fn precise() {
                let name = concat!(stringify!($body), ", precise");
                explore::<Shuttle>(name, $depth, super::$body::<Shuttle, QueueLink>);
            }

            #[test]
            fn coarse() {
                let name = concat!(stringify!($body), ", coarse");
                explore::<Shuttle>(name, $depth, super::$body::<Shuttle, Coarse>);
            }
        }
    )+};
    ($($body:ident),+ $(,)?) => {
        $crate::models!(@ $crate::checker::Depth::usual(), $($body),+);
    };
}
pub(crate) use models;
