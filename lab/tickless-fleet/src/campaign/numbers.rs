//! Lists of numbers and of ranges, such as `0-99,200`, in the file of a campaign.

use serde::Deserialize;
use std::collections::HashSet;

/// A list of at least one number, in the given order and without repetition. In a file it is
/// written as `[4, 8]` or as `"0-99,200"`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Numbers(Vec<u64>);

/// How many numbers a list can have.
const MOST: u64 = 1_000_000;

#[derive(Deserialize)]
#[serde(untagged)]
#[serde(expecting = "expected a list of numbers, or a text such as \"0-99,200\"")]
enum Written {
    List(Vec<u64>),
    Text(String),
}

// No `is_empty`, because there always is at least one number.
#[allow(clippy::len_without_is_empty)]
impl Numbers {
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the number at a place of the list. Places are counted from 0.
    pub fn get(&self, place: u64) -> Option<u64> {
        self.0.get(usize::try_from(place).ok()?).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }
}

impl TryFrom<Vec<u64>> for Numbers {
    type Error = String;

    fn try_from(list: Vec<u64>) -> Result<Numbers, String> {
        let mut seen = HashSet::new();
        match list.iter().find(|number| !seen.insert(**number)) {
            Some(twice) => Err(format!("{twice} is in the list twice")),
            None if list.is_empty() => Err("the list has no number".to_string()),
            None => Ok(Numbers(list)),
        }
    }
}

impl TryFrom<Written> for Numbers {
    type Error = String;

    fn try_from(written: Written) -> Result<Numbers, String> {
        match written {
            Written::List(list) => list.try_into(),
            Written::Text(text) => text.parse(),
        }
    }
}

impl std::str::FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Numbers, String> {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| format!("{text:?} is not a whole number"))
        };
        let mut list = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{part} goes down; write {last}-{first}"));
            }
            if (last - first).saturating_add(list.len() as u64) >= MOST {
                return Err(format!(
                    "{part} has more than {MOST} numbers; make several campaigns of it"
                ));
            }
            list.extend(first..=last);
        }
        list.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_and_its_ranges() {
        let numbers: Numbers = "5,0-3, 1000000-1499999".parse().unwrap();
        assert_eq!(numbers.len(), 500_005);
        assert_eq!(numbers.iter().take(6).collect::<Vec<_>>(), [5, 0, 1, 2, 3, 1_000_000]);
        assert_eq!((numbers.get(4), numbers.get(500_005)), (Some(3), None));
        for wrong in ["", "a", "3-1", "1,1", "0-5,3", "-1", "1-", "1,0-18446744073709551615"] {
            assert!(wrong.parse::<Numbers>().is_err(), "{wrong}");
        }
    }
}
