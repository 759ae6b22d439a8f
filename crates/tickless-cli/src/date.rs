//! Dates as RFC 3339 writes them.

/// Parses a date and time of day, such as `2030-01-01T00:00:00Z` or `2030-01-01T01:00:00+01:00`, or
/// a date without a time, which is its midnight in UTC. Returns nanoseconds since 1970. A leap
/// second counts as the second after it, as in the system's clock.
pub fn parse(text: &str) -> Result<i64, String> {
    parts(text).ok_or_else(|| {
        format!("{text:?} is no date between 1970 and 2261; write it as 2030-01-01T00:00:00Z")
    })
}

fn parts(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, offset) = match rest.strip_prefix(['T', 't', ' ']) {
        Some(rest) => rest.split_at_checked(8)?,
        None if rest.is_empty() => ("00:00:00", "Z"),
        None => return None,
    };
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let (fraction, zone) = match offset.strip_prefix('.') {
        Some(part) => part.split_at(part.find(|c: char| !c.is_ascii_digit())?),
        None => ("0", offset),
    };
    let fraction = format!("{fraction:0<9}").get(..9)?.parse::<i64>().ok()?;
    let east = match zone {
        "Z" | "z" => 0,
        _ => {
            let (sign, zone) = (zone.get(..1)?, zone.get(1..)?);
            let [hours, minutes] = numbers(zone, ':', [2, 2])?;
            let sign = if sign == "+" {
                1
            } else if sign == "-" {
                -1
            } else {
                return None;
            };
            (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))?
        }
    };
    let is_valid = (1970..=2261).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let seconds =
        ((days_before(year, month) + day - 1) * 24 + hour) * 3_600 + (minute - east) * 60 + second;
    (is_valid && seconds >= 0).then_some(seconds * 1_000_000_000 + fraction)
}

/// Parses numbers of given lengths with a character between them.
fn numbers<const N: usize>(text: &str, between: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(between);
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let part = parts.next()?;
        let is_number = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_number.then(|| part.parse().ok()).flatten()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970 to the first of a month.
fn days_before(year: i64, month: i64) -> i64 {
    let years: i64 = (1970..year).map(|year| 365 + i64::from(is_leap(year))).sum();
    years + (1..month).map(|month| days_in(year, month)).sum::<i64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_since_1970() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2030-01-01T00:00:00Z", 1_893_456_000),
            ("2030-01-01T01:00:00+01:00", 1_893_456_000),
            ("2029-12-31 19:30:00-04:30", 1_893_456_000),
            ("2028-02-29T12:00:00z", 1_835_438_400),
            ("2016-12-31T23:59:60Z", 1_483_228_800),
        ] {
            assert_eq!(parse(text), Ok(seconds * 1_000_000_000), "{text}");
        }
        assert_eq!(parse("1970-01-01T00:00:01.25Z"), Ok(1_250_000_000));
        for wrong in [
            "",
            "2030",
            "2030-13-01",
            "2030-02-29",
            "2030-01-01T24:00:00Z",
            "2030-01-01T00:00:00",
            "2030-01-01T00:00Z",
            "1969-12-31",
            "2262-01-01",
            "2030-01-01T00:00:00+1:00",
            "203é-01-01",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
