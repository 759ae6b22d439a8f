//! Dates as RFC 3339 writes them.

use jiff::Timestamp;

/// Parses a date and time of day, such as `2030-01-01T00:00:00Z` or `2030-01-01T01:00:00+01:00`, or
/// a date without a time, which is its midnight in UTC. Returns nanoseconds since 1970.
pub fn parse(text: &str) -> Result<i64, String> {
    let at_midnight = || format!("{text}T00:00:00Z").parse();
    let timestamp: Option<Timestamp> = text.parse().or_else(|_| at_midnight()).ok();
    let ns = timestamp.and_then(|timestamp| i64::try_from(timestamp.as_nanosecond()).ok());
    ns.filter(|ns| *ns >= 0).ok_or_else(|| {
        format!("{text:?} is no date between 1970 and 2261; write it as 2030-01-01T00:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_nanoseconds_since_1970() {
        for (text, ns) in [
            ("1970-01-01", 0),
            ("1970-01-01T00:00:01.25Z", 1_250_000_000),
            ("2029-12-31 19:30:00-04:30", 1_893_456_000_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
        for wrong in ["", "2030", "2030-02-29", "2030-01-01T00:00:00", "1969-12-31", "2263-01-01"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
