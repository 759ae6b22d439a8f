//! Lists of numbers and of ranges, as the axes of a campaign have them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Numbers in the order given, each once: `[4, 8]` or `"0-99,200"` in a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub struct Numbers {
    /// First and last of each stretch.
    stretches: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[serde(expecting = "expected a list of numbers, or a text such as \"0-99,200\"")]
enum Written {
    List(Vec<u64>),
    Text(String),
}

impl Numbers {
    /// How many there are.
    pub fn len(&self) -> u64 {
        let count = |&(first, last): &(u64, u64)| (last - first).saturating_add(1);
        self.stretches.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The number at this place.
    pub fn get(&self, mut place: u64) -> Option<u64> {
        for &(first, last) in &self.stretches {
            if place <= last - first {
                return Some(first + place);
            }
            place -= last - first + 1;
        }
        None
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.stretches.iter().flat_map(|&(first, last)| first..=last)
    }

    fn push(&mut self, first: u64, last: u64) -> Result<(), String> {
        let is_known = |&(low, high): &(u64, u64)| first <= high && low <= last;
        if self.stretches.iter().any(is_known) {
            return Err(format!("{first} is there twice"));
        }
        match self.stretches.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
            _ => self.stretches.push((first, last)),
        }
        Ok(())
    }
}

impl TryFrom<Written> for Numbers {
    type Error = String;

    fn try_from(written: Written) -> Result<Numbers, String> {
        let mut numbers = Numbers::default();
        match written {
            Written::List(list) => list.iter().try_for_each(|&one| numbers.push(one, one))?,
            Written::Text(text) => return text.parse(),
        }
        Ok(numbers)
    }
}

impl std::str::FromStr for Numbers {
    type Err = String;

    /// `0-99,200`.
    fn from_str(text: &str) -> Result<Numbers, String> {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| format!("{text:?} is not a whole number"))
        };
        let mut numbers = Numbers::default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{part} goes down; write {last}-{first}"));
            }
            numbers.push(first, last)?;
        }
        Ok(numbers)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.stretches.iter().enumerate() {
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

    /// Goal: a list is read, counted and written without being spelled out.
    #[test]
    fn lists_keep_their_order_and_stay_small() {
        let numbers: Numbers = "5,0-3, 1000000000-1999999999".parse().unwrap();
        assert_eq!(numbers.len(), 1_000_000_005);
        assert_eq!(numbers.iter().take(6).collect::<Vec<_>>(), [5, 0, 1, 2, 3, 1_000_000_000]);
        assert_eq!((numbers.get(4), numbers.get(1_000_000_005)), (Some(3), None));
        assert_eq!(numbers.to_string(), "5,0-3,1000000000-1999999999");
        assert_eq!("".parse::<Numbers>().unwrap(), Numbers::default());
        for wrong in ["a", "3-1", "1,1", "0-5,3", "-1", "1-"] {
            assert!(wrong.parse::<Numbers>().is_err(), "{wrong}");
        }
    }
}
