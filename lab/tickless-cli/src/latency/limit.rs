//! The bounds that the option `--limit` sets: `p99=200us` for all sleepers, or `hrtimer.p99=200us`.

use crate::values::parse_with_unit;
use std::fmt;
use std::time::Duration;
use tickless_lab::latency::{Figures, Row, Sleeper};

#[derive(Clone, Copy, Debug)]
pub struct Limit {
    sleeper: Option<Sleeper>,
    figure: &'static Figure,
    at_most: Duration,
}

/// The name of a figure, and a function that reads it, in ns; `None` if the sleeper never woke.
type Figure = (&'static str, fn(&Figures) -> Option<f64>);

const FIGURES: [Figure; 6] = [
    ("min", |it| it.min.map(|ns| ns as f64)),
    ("avg", |it| it.avg),
    ("p50", |it| it.p50.map(|ns| ns as f64)),
    ("p99", |it| it.p99.map(|ns| ns as f64)),
    ("p999", |it| it.p999.map(|ns| ns as f64)),
    ("max", |it| it.max.map(|ns| ns as f64)),
];

impl Limit {
    pub fn parse(text: &str) -> Result<Limit, String> {
        const FORM: &str = "write it as p99=200us, or hrtimer.p99=200us for one sleeper alone";
        let (what, at_most) = text.split_once('=').ok_or(FORM)?;
        let (sleeper, figure) = match what.split_once('.') {
            Some((sleeper, figure)) => (Some(sleeper), figure),
            None => (None, what),
        };
        let sleeper = sleeper.map(|name| Sleeper::named(name).ok_or(())).transpose();
        let names =
            "sleepers are clock_nanosleep, timerfd, hrtimer, hrtimer_spin, hrtimer_auto, timeout";
        Ok(Limit {
            sleeper: sleeper.map_err(|_| format!("{what}: {names}"))?,
            figure: FIGURES
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(figure))
                .ok_or_else(|| format!("{figure:?} is none of min, avg, p50, p99, p999, max"))?,
            at_most: parse_with_unit(at_most)?,
        })
    }

    /// Returns why the bound cannot be checked: these results lack its figure. Returns `None` if it
    /// can be checked.
    pub fn unknown(&self, rows: &[&Row]) -> Option<String> {
        let mut rows = rows.iter().filter(|row| self.is_for(row)).peekable();
        if rows.peek().is_none() {
            let name = self.sleeper.map_or("", Sleeper::name);
            return Some(format!("{name} has a limit and was not measured; add --sleeper {name}"));
        }
        let row = rows.find(|row| (self.figure.1)(&row.figures).is_none())?;
        Some(format!(
            "{}: {self} us, and it never woke; measure for longer (-D) or more often (-i)",
            row.sleeper
        ))
    }

    fn is_for(&self, row: &Row) -> bool {
        self.sleeper.is_none_or(|sleeper| sleeper.name() == row.sleeper)
    }

    pub fn exceeded(&self, row: &Row) -> Option<String> {
        let ns = (self.figure.1)(&row.figures).filter(|_| self.is_for(row))?;
        let most = self.at_most.as_nanos() as f64;
        (ns > most).then(|| {
            let us = |ns: f64| ns / 1e3;
            format!("{}: {self} us, and it is {:.1}", row.sleeper, us(ns))
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be at most {}", self.figure.0, self.at_most.as_nanos() as f64 / 1e3)
    }
}
