//! One cell of a campaign (one computation of the many that the campaign's file requests), and the
//! key under which its results are stored.

use crate::clock::Clock;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::hash::Hasher;
use tickless_lab::studies::STUDIES;
use tickless_trace::replay::ReplayPolicy;

/// The greatest tick rate of a simulated machine, in ticks a second.
pub(super) const HZ_MAX: u64 = 100_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    Simulate,
    Replay,
    Project,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Simulate, Kind::Replay, Kind::Project];

    pub const fn name(self) -> &'static str {
        match self {
            Kind::Simulate => "simulate",
            Kind::Replay => "replay",
            Kind::Project => "project",
        }
    }

    /// Returns the axes that a table of this kind must have, and those that it can have.
    pub const fn axes(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Kind::Simulate => (
                &["studies", "machines"],
                &["cpus", "policies", "hz", "seeds", "rounds", "messages"],
            ),
            Kind::Replay => (&["traces"], &["policies", "inference"]),
            Kind::Project => (&["traces", "machines"], &["cpus", "clocks", "policies", "seeds"]),
        }
    }
}

/// A cell (one computation): its kind and parameters. Parameters that the kind lacks are `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cell {
    pub kind: Kind,
    pub study: Option<StudyName>,
    /// The machine's name or file, as it is written in the campaign's file.
    pub machine: Option<String>,
    /// A hash of the numbers in the machine's file: if they change, results are computed again.
    pub machine_hash: Option<String>,
    /// The path of the trace, relative to the campaign's folder.
    pub trace: Option<String>,
    /// The size of the trace in bytes: if another trace replaces it, results are computed again.
    pub bytes: Option<u64>,
    pub cpus: Option<u16>,
    pub clock: Option<Clock>,
    /// The policy for the timer device; `None` for a study that always runs under all its policies.
    /// A replay covers several `policies`, and each of its results names one.
    pub policy: Option<ReplayPolicy>,
    pub policies: Vec<ReplayPolicy>,
    pub hz: Option<u32>,
    pub seed: Option<u64>,
    /// The number of round trips or messages that the study simulates; `None` for the study's
    /// default, or if the study has no such number.
    pub length: Option<u32>,
    pub inference: Option<bool>,
}

/// The name of a study that a campaign can run: one of [`STUDIES`], or `schedule`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(into = "&'static str")]
pub struct StudyName(&'static str);

impl From<StudyName> for &'static str {
    fn from(StudyName(name): StudyName) -> &'static str {
        name
    }
}

impl<'de> Deserialize<'de> for StudyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StudyName, D::Error> {
        let name = String::deserialize(deserializer)?;
        let names: Vec<&str> = STUDIES.iter().map(|study| study.name).chain(["schedule"]).collect();
        let found = names.iter().find(|known| **known == name);
        found.map(|name| StudyName(name)).ok_or_else(|| {
            let names = names.join("`, `");
            D::Error::custom(format!("there is no study {name}, expected one of `{names}`"))
        })
    }
}

impl StudyName {
    pub const REARM: StudyName = StudyName("rearm");
    pub const SCHEDULE: StudyName = StudyName("schedule");

    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The policies from which a campaign can choose some for this study. Empty for a study that
    /// always runs under all policies that it knows.
    pub fn policies(self) -> &'static [ReplayPolicy] {
        match self {
            StudyName::REARM => &ReplayPolicy::DEFAULT,
            StudyName::SCHEDULE => &[
                ReplayPolicy::Lazy,
                ReplayPolicy::RestartAware,
                ReplayPolicy::LazyTimers,
                ReplayPolicy::DeferredRearm,
                ReplayPolicy::Linux71,
            ],
            _ => &[],
        }
    }
}

/// Identifies the results of a cell: a hash of the program's version and of the cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(u128);

impl Cell {
    /// Checks that `study` has what the cell asks for, so that no result is labelled with a
    /// policy, a rate or a length that did not run.
    pub(crate) fn check(&self, study: StudyName) -> Result<(), String> {
        let (name, known) = (study.name(), study.policies());
        let names = || known.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
        if let Some(policy) = self.policy.filter(|policy| !known.contains(policy)) {
            return Err(match known {
                [] => format!("study {name} always runs under all policies; leave the policy out"),
                _ => format!("study {name} knows {}, not {}", names(), policy.name()),
            });
        }
        if let Some(length) = self.length {
            if known.is_empty() {
                return Err(format!("study {name} has one length; leave the length out"));
            } else if study == StudyName::REARM && self.policy.is_none() {
                let names = names();
                return Err(format!(
                    "study {name} has a length under one policy; name a policy of {names}"
                ));
            } else if length == 0 {
                return Err("a length is at least 1".to_string());
            }
        }
        match self.hz.filter(|&hz| !(1..=HZ_MAX).contains(&hz.into())) {
            Some(hz) => Err(format!("{hz} ticks a second; ask for 1 to {HZ_MAX}")),
            None => Ok(()),
        }
    }

    /// Returns the key of the cell's results, as computed by this version of the program. It is
    /// equal on every computer.
    pub fn key(&self, version: &str) -> Key {
        // This cannot fail: a cell consists of numbers and text only.
        let text = serde_json::to_string(self).unwrap_or_default();
        Key::of([version.as_bytes(), text.as_bytes()])
    }
}

impl Key {
    /// Returns a 128-bit SipHash. Among 10^9 cells, two keys are equal with probability 10^-20.
    fn of(parts: impl IntoIterator<Item: AsRef<[u8]>>) -> Key {
        let mut hash = SipHasher24::new();
        for part in parts {
            hash.write(part.as_ref());
            // Mark the end of each part, so that ("a", "b") and ("ab", "") have different hashes.
            hash.write_u8(0);
        }
        Key(hash.finish128().as_u128())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.to_string()
    }
}

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Key, String> {
        let is_key = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| is_key);
        number.map(Key).ok_or_else(|| format!("{text:?} is not a key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_every_parameter_and_on_the_version() {
        let key = |seed, version| {
            let study = Some(StudyName::REARM);
            Cell { study, seed: Some(seed), ..Cell::default() }.key(version)
        };
        assert_eq!(key(1, "1.0"), key(1, "1.0"));
        assert_ne!(key(1, "1.0"), key(2, "1.0"));
        assert_ne!(key(1, "1.0"), key(1, "1.1"));
        let written = key(1, "1.0").to_string();
        assert_eq!(Key::try_from(written), Ok(key(1, "1.0")));
        for wrong in ["0".repeat(31), "ü".repeat(16), format!("+{}", "0".repeat(31))] {
            assert!(Key::try_from(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
