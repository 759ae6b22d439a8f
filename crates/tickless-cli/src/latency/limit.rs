//! What must not be exceeded: `p99=200us`, or for one sleeper alone `hrtimer.p99=200us`.

use super::{Row, Sleeper};
use clap::ValueEnum;
use std::fmt;
use std::time::Duration;

/// What is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Quantile {
    /// The least
    Min,
    /// The average
    Avg,
    /// The median
    P50,
    /// 99 of 100 are no later
    P99,
    /// 999 of 1000 are no later
    P999,
    /// The most
    Max,
}

/// What must not be exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// By whom; `None` for all.
    pub sleeper: Option<Sleeper>,
    /// What.
    pub quantile: Quantile,
    /// How much.
    pub at_most: Duration,
}

impl Limit {
    /// Reads one as the command line has it.
    pub fn parse(text: &str) -> Result<Limit, String> {
        const FORM: &str = "write it as p99=200us, or hrtimer.p99=200us for one sleeper alone";
        let (what, at_most) = text.split_once('=').ok_or(FORM)?;
        let (sleeper, quantile) = match what.split_once('.') {
            Some((sleeper, quantile)) => (Some(sleeper), quantile),
            None => (None, what),
        };
        let sleeper = sleeper.map(|name| Sleeper::from_str(name, true)).transpose();
        let names = "sleepers are clock_nanosleep, timerfd, hrtimer, timeout";
        Ok(Limit {
            sleeper: sleeper.map_err(|_| format!("{what}: {names}"))?,
            quantile: Quantile::from_str(quantile, true)
                .map_err(|_| format!("{quantile:?} is none of min, avg, p50, p99, p999, max"))?,
            at_most: parse_time(at_most, None)?,
        })
    }

    /// What is wrong with this row, if the limit is for it and is exceeded.
    pub fn exceeded(&self, row: &Row) -> Option<String> {
        let is_for = self.sleeper.is_none_or(|sleeper| sleeper.name() == row.sleeper);
        let ns = row.quantile_ns(self.quantile);
        let most = self.at_most.as_nanos() as f64;
        (is_for && ns > most).then(|| {
            let us = |ns: f64| ns / 1e3;
            format!("{}: {self} us, and it is {:.1}", row.sleeper, us(ns))
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.quantile.to_possible_value();
        let name = value.as_ref().map_or("", |value| value.get_name());
        write!(f, "{name} is to be at most {}", self.at_most.as_nanos() as f64 / 1e3)
    }
}

/// A number with a unit from ns to d; without one it is in `default`, if there is one.
pub fn parse_time(text: &str, default: Option<&str>) -> Result<Duration, String> {
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
            assert_eq!(parse_time(text, None), Ok(want));
        }
        assert_eq!(parse_time("10", Some("s")), Ok(Duration::from_secs(10)));
        for wrong in ["10", "", "us", "-1s", "1x", "1e400s", "nans"] {
            assert!(parse_time(wrong, None).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn limits_name_what_and_whose() {
        let limit = Limit::parse("p99=200us").unwrap();
        assert_eq!((limit.sleeper, limit.quantile), (None, Quantile::P99));
        let limit = Limit::parse("hrtimer.max=1ms").unwrap();
        assert_eq!((limit.sleeper, limit.quantile), (Some(Sleeper::Hrtimer), Quantile::Max));
        for wrong in ["p99", "p98=1us", "p99=1", "sundial.p99=1us", "p99=fast"] {
            assert!(Limit::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
