//! Removing a timer does not program the event device.
//!
//! | file | what |
//! |---|---|
//! | `ping_pong` | two threads that wake each other, each wait guarded by a timer |
//! | `devices` | the same on each event device: a futex, a timerfd |
//! | `live` | the study on the machine at hand: eager against lazy |

mod devices;
pub(crate) mod doctor;
mod live;
mod ping_pong;
pub(crate) mod published;
pub mod sim;

use super::Offer;

/// The study as it is offered.
pub const OFFER: Offer = Offer {
    name: "rearm",
    about: "Removing the first timer: program the event device, or not",
    live: Some(live::run),
    sim: Some(super::sim::run_rearm),
};
