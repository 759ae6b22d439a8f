//! The expiry thread is woken when something expired, not on every tick.
//!
//! | file | what |
//! |---|---|
//! | `scene` | one measurement: ticking drivers, a few timeouts, a probe, perhaps load |
//! | `circumstances` | what is compared in which circumstances |
//! | `live` | the study on the machine at hand |
//! | `report` | its tables, plots and answers |

mod circumstances;
pub(crate) mod doctor;
mod live;
pub(crate) mod published;
mod report;
mod scene;
pub mod sim;

use super::Offer;

/// The study as it is offered.
pub const OFFER: Offer = Offer {
    name: "deferred",
    about: "The expiry thread: wake it on every tick, or when something expired",
    live: Some(live::run),
    sim: Some(super::sim::run_deferred),
};
