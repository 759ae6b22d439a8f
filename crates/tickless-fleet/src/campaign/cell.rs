//! One cell of a campaign, and the key that its results are found by.

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::hash::Hasher;

/// Something to be worked out, with everything that its result depends on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Cell {
    /// A study on a simulated machine.
    Simulate(Simulate),
    /// A trace under some policies.
    Replay(Replay),
    /// A trace on a simulated machine.
    Project(Project),
}

/// A study on a simulated machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Simulate {
    /// The study.
    pub study: String,
    /// The machine, as the campaign names it.
    pub machine: String,
    /// What stands in the machine's file, as a hash.
    pub machine_hash: String,
    /// How many CPUs it has.
    pub cpus: u16,
    /// The policy; `None` where the study compares both sides itself.
    pub policy: Option<String>,
    /// Ticks a second; `None` for the machine's own.
    pub hz: Option<u32>,
    /// Where randomness starts.
    pub seed: u64,
    /// How long it takes: round trips or messages, for the studies that have either.
    pub length: Option<u32>,
}

/// A trace under some policies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Replay {
    /// Its path, as the campaign names it.
    pub trace: String,
    /// Its size, so that another trace of the same name is another cell.
    pub bytes: u64,
    /// The policies.
    pub policies: Vec<String>,
    /// Are operations without a record inferred?
    pub inference: bool,
}

/// A trace on a simulated machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Project {
    /// Its path, as the campaign names it.
    pub trace: String,
    /// Its size.
    pub bytes: u64,
    /// The machine, as the campaign names it.
    pub machine: String,
    /// What stands in the machine's file, as a hash.
    pub machine_hash: String,
    /// How many CPUs it has.
    pub cpus: u16,
    /// The clock.
    pub clock: String,
    /// The policy.
    pub policy: String,
    /// Where randomness starts.
    pub seed: u64,
}

/// The name of a cell's results: a hash over the program's version and all that the cell is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key([u8; 16]);

impl Cell {
    /// Its key under this version of the program. Two cells of different parameters have
    /// different keys, on every machine and in every run.
    pub fn key(&self, version: &str) -> Key {
        // A cell is numbers and text, which always can be written.
        let text = serde_json::to_string(self).unwrap_or_default();
        Key::of([version.as_bytes(), text.as_bytes()])
    }
}

impl Key {
    /// A key for several cells together.
    pub(crate) fn of_all(keys: impl Iterator<Item = Key>) -> Key {
        Key::of(keys.map(|key| key.0))
    }

    /// SipHash of 128 bits: a thousand million cells have two equal keys once in 10^20 campaigns.
    fn of(parts: impl IntoIterator<Item: AsRef<[u8]>>) -> Key {
        let mut hash = SipHasher24::new();
        for part in parts {
            hash.write(part.as_ref());
            // Where one part ends: ("a", "b") is not ("ab", "").
            hash.write_u8(0);
        }
        Key(hash.finish128().as_bytes())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
        let wrong = || format!("{text:?} is not a key");
        let digit =
            |place| text.get(place..place + 1).and_then(|it| u8::from_str_radix(it, 16).ok());
        let mut key = [0; 16];
        if text.len() != 32 {
            return Err(wrong());
        }
        for (place, byte) in key.iter_mut().enumerate() {
            let pair = digit(2 * place).zip(digit(2 * place + 1)).ok_or_else(wrong)?;
            *byte = pair.0 << 4 | pair.1;
        }
        Ok(Key(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(seed: u64) -> Cell {
        Cell::Simulate(Simulate {
            study: "rearm".to_string(),
            machine: "host".to_string(),
            machine_hash: "1".to_string(),
            cpus: 2,
            policy: None,
            hz: Some(250),
            seed,
            length: None,
        })
    }

    /// Goal: a key says which cell it is, under which version, and survives being written.
    #[test]
    fn keys_are_of_parameters_and_version() {
        assert_eq!(cell(1).key("1.0"), cell(1).key("1.0"));
        assert_ne!(cell(1).key("1.0"), cell(2).key("1.0"));
        assert_ne!(cell(1).key("1.0"), cell(1).key("1.1"));
        let key = cell(1).key("1.0");
        assert_eq!(Key::try_from(key.to_string()), Ok(key));
        assert!(Key::try_from("0".repeat(31)).is_err() && Key::try_from("ü".repeat(16)).is_err());
    }
}
