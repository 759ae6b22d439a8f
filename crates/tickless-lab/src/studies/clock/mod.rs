//! One reader reads a slow shared counter, and the others take its value.
//!
//! | file | what |
//! |---|---|
//! | `device` | the slow counters: an emulated one, and what this machine has |
//! | `readers` | threads that read one counter as fast as they can, and check every value |
//! | `live` | the study on the machine at hand: direct against combined |

mod device;
pub(crate) mod doctor;
mod live;
pub(crate) mod published;
mod readers;
pub mod sim;

use super::Offer;

/// The study as it is offered.
pub const OFFER: Offer = Offer {
    name: "clock",
    about: "A slow shared counter: everybody reads it, or one reads for all",
    live: Some(live::run),
    sim: Some(super::sim::run_clock),
};
