//! The core's protocols between threads under loom: every schedule up to so many preemptions, and
//! every value that a load may return.
//!
//! The core runs here as it is; only its platform is the checkers' (see `checker`). Beside it
//! stand two protocols that Linux had or nearly had, each with the schedule that breaks it.

#![allow(dead_code, reason = "the stage is for all models")]

mod activity;
mod arming;
mod cancelling;
mod checker;
mod freeing;
mod place;
mod stage;
mod under_loom;
mod world;

/// Makes two tests of each body, one for each family of timers.
macro_rules! models {
    ($($body:ident),+ $(,)?) => {$(
        mod $body {
            use crate::checker::{Depth, explore};
            use crate::under_loom::Loom;
            use tickless_core::link::{QueueLink, WheelLink};

            #[test]
            fn ranged() {
                let name = concat!(stringify!($body), ", ranged");
                explore::<Loom>(name, Depth::usual(), super::$body::<Loom, QueueLink>);
            }

            #[test]
            fn coarse() {
                let name = concat!(stringify!($body), ", coarse");
                explore::<Loom>(name, Depth::usual(), super::$body::<Loom, WheelLink>);
            }
        }
    )+};
}
pub(crate) use models;
