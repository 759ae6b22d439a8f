//! Lists of numbers and of ranges, such as `0-99,200`, on the command line.

use std::collections::HashSet;
use std::ops::RangeInclusive;

/// A list of at least one number, in the given order and without repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbers(pub Vec<u64>);

impl Numbers {
    const MOST: u64 = 1_000_000;

    /// Parses a list of numbers that are in `range`.
    pub fn within(text: &str, range: RangeInclusive<u64>) -> Result<Numbers, String> {
        let number = |text: &str| {
            let number = text.trim().parse::<u64>();
            let (least, most) = (range.start(), range.end());
            let wrong = |_| format!("{text:?} is not a whole number from {least} to {most}");
            let number = number.map_err(wrong)?;
            let outside = || format!("{number} is not a number from {least} to {most}");
            range.contains(&number).then_some(number).ok_or_else(outside)
        };
        let mut list = Vec::new();
        for part in text.split(',') {
            let range = part.split_once('-').filter(|(first, _)| !first.is_empty());
            let (first, last) = range.unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{part} goes down; write {last}-{first}"));
            }
            if (last - first).saturating_add(list.len() as u64) >= Numbers::MOST {
                return Err(format!("{part} has more than {} numbers", Numbers::MOST));
            }
            list.extend(first..=last);
        }
        let mut seen = HashSet::new();
        match list.iter().find(|number| !seen.insert(**number)) {
            Some(twice) => Err(format!("{twice} is in the list twice")),
            None => Ok(Numbers(list)),
        }
    }
}
