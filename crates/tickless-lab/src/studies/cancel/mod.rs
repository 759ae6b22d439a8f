//! A cancel that waits looks at one base, not at all.
//!
//! | file | what |
//! |---|---|
//! | `calls` | what one call takes: warm and cold, on the caller's base |
//! | `across` | the same on another CPU's base |
//! | `live` | the study on the machine at hand: 2 to 512 bases, before and after |

mod across;
mod calls;
pub(crate) mod doctor;
mod live;
pub(crate) mod published;
pub mod sim;

use super::Offer;

/// The study as it is offered.
pub const OFFER: Offer = Offer {
    name: "cancel",
    about: "A cancel that waits: look at every base, or at one",
    live: Some(live::run),
    sim: Some(super::sim::run_cancel),
};
