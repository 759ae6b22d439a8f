//! Parsers of values on the command line: times, dates, sizes, lists of numbers, and names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;
use tickless_trace::replay::ReplayPolicy;

/// Returns a parser for the values `all`. `describe` returns a value's name and its help text.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    describe: fn(T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = T> {
    one_name_of(all.iter().map(|&one| describe(one))).try_map(move |name| {
        let found = all.iter().copied().find(|&one| describe(one).0 == name);
        found.ok_or("no such name")
    })
}

/// Returns a parser for these names, each with its help text.
pub fn one_name_of(
    all: impl Iterator<Item = (&'static str, &'static str)>,
) -> PossibleValuesParser {
    PossibleValuesParser::new(all.map(|(name, about)| PossibleValue::new(name).help(about)))
}

pub fn policy(all: &'static [ReplayPolicy]) -> impl TypedValueParser<Value = ReplayPolicy> {
    one_of(all, |policy| {
        let about = match policy {
            ReplayPolicy::Eager => {
                "Every removal of the first timer programs the device: Linux until 5.14"
            }
            ReplayPolicy::Lazy => "No removal programs it",
            ReplayPolicy::RestartAware => {
                "A cancel programs it, a restart is judged as a whole: Linux 5.15 to 7.0"
            }
            ReplayPolicy::LazyTimers => {
                "Restart-aware, but the scheduler's slice timer leaves the device alone"
            }
            ReplayPolicy::DeferredRearm => {
                "Restart-aware, but an interrupt's end leaves the device to the scheduler"
            }
            ReplayPolicy::Linux71 => "Both additions: Linux since 7.1",
        };
        (policy.name(), about)
    })
}

/// Parses a number with a unit from ns (nanoseconds) to d (days). A number without a unit is in the
/// unit `default`, or is an error if `default` is `None`.
fn parse_time(text: &str, default: Option<&str>) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3_600.0),
        ("d", 86_400.0),
    ];
    let text = text.trim();
    let at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit = if unit.is_empty() { default.unwrap_or("") } else { unit };
    let seconds = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| *seconds);
    let number: Option<f64> = number.trim().parse().ok();
    let time = seconds
        .zip(number)
        .and_then(|(seconds, number)| Duration::try_from_secs_f64(seconds * number).ok());
    time.ok_or_else(|| {
        format!("{text:?} is not a time; write a number and ns, us, ms, s, m, h or d")
    })
}

pub fn parse_with_unit(text: &str) -> Result<Duration, String> {
    parse_time(text, None)
}

pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    match parse_time(text, Some("s"))? {
        Duration::ZERO => Err("nothing can be measured in no time".to_string()),
        time => Ok(time),
    }
}

/// Parses a date and time of day, such as `2030-01-01T00:00:00Z` or `2030-01-01T01:00:00+01:00`, or
/// a date without a time, which is its midnight in UTC. Returns nanoseconds since 1970.
pub fn parse_date(text: &str) -> Result<i64, String> {
    let at_midnight = || format!("{text}T00:00:00Z").parse();
    let timestamp: Option<Timestamp> = text.parse().or_else(|_| at_midnight()).ok();
    let ns = timestamp.and_then(|timestamp| i64::try_from(timestamp.as_nanosecond()).ok());
    ns.filter(|ns| *ns >= 0).ok_or_else(|| {
        format!("{text:?} is no date between 1970 and 2261; write it as 2030-01-01T00:00:00Z")
    })
}

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

/// Parses a size with a unit. Returns kilobytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a size; write a number and K, M or G, such as 64M");
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let kilobytes: u64 = match unit.to_ascii_uppercase().as_str() {
        "K" => 1,
        "M" => 1 << 10,
        "G" => 1 << 20,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(kilobytes) {
        Some(size @ 1..=SIZE_MAX_KB) => Ok(size),
        _ => Err(format!("{text} is not between 1K and 64G")),
    }
}

/// The largest size that is accepted, 64 GB: more than any machine has for each CPU, and so small
/// that calculations do not overflow.
const SIZE_MAX_KB: u64 = 64 << 20;

pub fn show_size(kilobytes: u64) -> String {
    match kilobytes {
        size if size % (1 << 20) == 0 => format!("{}G", size >> 20),
        size if size % (1 << 10) == 0 => format!("{}M", size >> 10),
        size => format!("{size}K"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, want) in [
            ("200us", Duration::from_micros(200)),
            ("1.5ms", Duration::from_micros(1_500)),
            ("2h", Duration::from_secs(7_200)),
            (" 3 s", Duration::from_secs(3)),
        ] {
            assert_eq!(parse_with_unit(text), Ok(want));
        }
        assert_eq!(parse_time("10", Some("s")), Ok(Duration::from_secs(10)));
        for wrong in ["10", "", "us", "-1s", "1x", "1e400s", "nans"] {
            assert!(parse_with_unit(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn dates_are_nanoseconds_since_1970() {
        for (text, ns) in [
            ("1970-01-01", 0),
            ("1970-01-01T00:00:01.25Z", 1_250_000_000),
            ("2029-12-31 19:30:00-04:30", 1_893_456_000_000_000_000),
        ] {
            assert_eq!(parse_date(text), Ok(ns), "{text}");
        }
        for wrong in ["", "2030", "2030-02-29", "2030-01-01T00:00:00", "1969-12-31", "2263-01-01"] {
            assert!(parse_date(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, want) in [("4K", 4), ("64M", 65_536), (" 1g ", 1 << 20)] {
            assert_eq!(parse_size(text), Ok(want));
        }
        for wrong in ["", "64", "M", "-1M", "0K", "1T", "65G", "18446744073709551615M", "1µ"] {
            assert!(parse_size(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!([4, 1_536, 65_536, 1 << 20].map(show_size), ["4K", "1536K", "64M", "1G"]);
    }
}
