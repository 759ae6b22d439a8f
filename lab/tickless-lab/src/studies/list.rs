//! All studies, and the checks that they bring to the doctor.

use super::study::Study;
use super::{cancel, clock, deferred, phase, rearm};
use crate::doctor::MACHINE_CHECKS;
use crate::doctor::checks::{CHECKS, Check};

pub const STUDIES: &[Study] =
    &[rearm::STUDY, clock::STUDY, cancel::STUDY, deferred::STUDY, phase::STUDY];

impl Study {
    pub fn named(name: &str) -> Option<&'static Study> {
        STUDIES.iter().find(|study| study.name == name)
    }
}

/// Returns the doctor's checks: those of the studies' mechanisms, then the others.
pub fn checks() -> Vec<&'static Check> {
    STUDIES.iter().flat_map(|study| study.checks).chain(&CHECKS).chain(&MACHINE_CHECKS).collect()
}
