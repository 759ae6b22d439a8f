//! Refills of bandwidth groups that come together, or apart.
//!
//! | file | what |
//! |---|---|
//! | `work` | two groups of threads with a fixed amount of work, and what became of it |
//! | `cgroups` | groups of the kernel's own controller, picked by their phases |
//! | `control` | how exact the library's controller is, and what it costs |
//! | `live` | the study on the machine at hand |

mod cgroups;
mod control;
pub(crate) mod doctor;
mod live;
pub(crate) mod published;
pub mod sim;
mod work;

use super::Offer;

/// The study as it is offered.
pub const OFFER: Offer = Offer {
    name: "phase",
    about: "Two groups with a CPU quota: refill them together, or half a period apart",
    live: Some(live::run),
    sim: Some(super::sim::run_phase),
};
