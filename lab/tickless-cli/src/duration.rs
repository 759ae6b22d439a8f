//! Durations as people write them.

use std::time::Duration;

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
}
