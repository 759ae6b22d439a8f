//! The core's protocols between threads under shuttle: many random schedules. See `loom.rs`.

#![allow(dead_code, reason = "the stage is for all models")]

mod activity;
mod arming;
mod cancelling;
mod checker;
mod freeing;
mod place;
mod stage;
mod under_shuttle;
mod world;

/// Makes two tests of each body, one for each family of timers.
macro_rules! models {
    ($($body:ident),+ $(,)?) => {$(
        mod $body {
            use crate::checker::{Depth, explore};
            use crate::under_shuttle::Shuttle;
            use tickless_core::link::{QueueLink, WheelLink};

            #[test]
            fn ranged() {
                let name = concat!(stringify!($body), ", ranged");
                explore::<Shuttle>(name, Depth::usual(), super::$body::<Shuttle, QueueLink>);
            }

            #[test]
            fn coarse() {
                let name = concat!(stringify!($body), ", coarse");
                explore::<Shuttle>(name, Depth::usual(), super::$body::<Shuttle, WheelLink>);
            }
        }
    )+};
}
pub(crate) use models;
