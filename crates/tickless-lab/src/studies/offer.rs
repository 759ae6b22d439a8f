//! Which studies there are, and in which worlds.

use super::{Request, Study, StudyError, World, cancel, clock, deferred, phase, rearm};
use crate::progress::Progress;

/// Runs a study in one world.
pub type Runner = fn(&Request, &dyn Progress) -> Result<Study, StudyError>;

/// A study that exists, in one world or in both.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// As the command line names it.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// On the machine at hand.
    pub live: Option<Runner>,
    /// On a simulated machine.
    pub sim: Option<Runner>,
}

/// All studies, in the order of their seeds.
pub const OFFERS: &[Offer] =
    &[rearm::OFFER, clock::OFFER, cancel::OFFER, deferred::OFFER, phase::OFFER];

impl Offer {
    /// The study of this name.
    pub fn named(name: &str) -> Option<&'static Offer> {
        OFFERS.iter().find(|offer| offer.name == name)
    }

    /// Runs it as requested.
    pub fn run(&self, request: &Request, progress: &dyn Progress) -> Result<Study, StudyError> {
        let (runner, exists) = match request.world {
            World::Live => (self.live, World::Sim),
            World::Sim => (self.sim, World::Live),
        };
        let error = StudyError::NotInThisWorld { study: self.name, asked: request.world, exists };
        runner.ok_or(error)?(request, progress)
    }
}
