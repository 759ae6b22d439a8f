//! Lists of numbers and of ranges, such as `0-99,200`, in the file of a campaign.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A list of at least one number, in the given order and without repetition. In a file it is
/// written as `[4, 8]` or as `"0-99,200"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub struct Numbers {
    /// The first and the last number of each range. For a single number, both are equal.
    ranges: Vec<(u64, u64)>,
}

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
        let count = |&(first, last): &(u64, u64)| (last - first).saturating_add(1);
        self.ranges.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Returns the number at a place of the list. Places are counted from 0.
    pub fn get(&self, mut place: u64) -> Option<u64> {
        for &(first, last) in &self.ranges {
            if place <= last - first {
                return Some(first + place);
            }
            place -= last - first + 1;
        }
        None
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().flat_map(|&(first, last)| first..=last)
    }

    /// Makes a list of ranges, which must not overlap. Joins adjacent ones.
    fn of_ranges(ranges: impl IntoIterator<Item = (u64, u64)>) -> Result<Numbers, String> {
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (first, last) in ranges {
            if all.iter().any(|&(low, high)| first <= high && low <= last) {
                return Err(format!("{first} is in the list twice"));
            }
            match all.last_mut() {
                Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
                _ => all.push((first, last)),
            }
        }
        match all.is_empty() {
            true => Err("the list has no number".to_string()),
            false => Ok(Numbers { ranges: all }),
        }
    }
}

impl TryFrom<Written> for Numbers {
    type Error = String;

    fn try_from(written: Written) -> Result<Numbers, String> {
        match written {
            Written::List(list) => Numbers::of_ranges(list.into_iter().map(|one| (one, one))),
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
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            match first > last {
                true => Err(format!("{part} goes down; write {last}-{first}")),
                false => Ok((first, last)),
            }
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        Numbers::of_ranges(parts.map(range).collect::<Result<Vec<_>, _>>()?)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl From<Numbers> for String {
    fn from(numbers: Numbers) -> String {
        numbers.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_and_its_ranges() {
        let numbers: Numbers = "5,0-3, 1000000000-1999999999".parse().unwrap();
        assert_eq!(numbers.len(), 1_000_000_005);
        assert_eq!(numbers.iter().take(6).collect::<Vec<_>>(), [5, 0, 1, 2, 3, 1_000_000_000]);
        assert_eq!((numbers.get(4), numbers.get(1_000_000_005)), (Some(3), None));
        assert_eq!(numbers.to_string(), "5,0-3,1000000000-1999999999");
        for wrong in ["", "a", "3-1", "1,1", "0-5,3", "-1", "1-"] {
            assert!(wrong.parse::<Numbers>().is_err(), "{wrong}");
        }
    }
}
