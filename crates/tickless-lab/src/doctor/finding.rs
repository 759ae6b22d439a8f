//! The result of a check.

use serde::Serialize;
use std::borrow::Cow;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// The figure could not be obtained, so there is no judgement.
    Unknown,
    /// The figure is unusual: the user should look into it.
    Warn,
    Bad,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Unknown => "unknown",
            Verdict::Warn => "warn",
            Verdict::Bad => "bad",
        }
    }

    /// Returns `Bad` if the figure is at least `bad`, `Warn` if it is at least `warn`, otherwise
    /// `Ok`.
    pub fn from_limits(figure: f64, warn: f64, bad: f64) -> Verdict {
        match figure {
            figure if figure >= bad => Verdict::Bad,
            figure if figure >= warn => Verdict::Warn,
            _ => Verdict::Ok,
        }
    }
}

/// The result of a check. The JSON keys are stable and documented in `docs/book/src/doctor.md`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    pub figure: Option<f64>,
    pub unit: &'static str,
    /// How the figure was obtained, or why it could not be obtained.
    pub how: String,
    /// What to do; empty if there is nothing to do.
    pub advice: String,
    pub study: &'static str,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    pub verdict: Verdict,
    pub figure: Option<f64>,
    pub how: String,
    pub advice: String,
}

/// A judgement, or an error text: the reason why nothing could be judged, and what to do about
/// that.
pub type Judged<'a> = Result<Judgement, Cow<'a, str>>;

impl Judgement {
    pub fn unknown<'a>(why: impl Into<Cow<'a, str>>) -> Judged<'a> {
        Err(why.into())
    }

    /// Returns the judgement of a figure. The advice is dropped if the verdict is `Ok`, because
    /// there is nothing to do then.
    pub fn figure(
        verdict: Verdict,
        figure: f64,
        how: impl Into<String>,
        advice: impl Into<String>,
    ) -> Judged<'static> {
        let advice = if verdict == Verdict::Ok { String::new() } else { advice.into() };
        Ok(Judgement { verdict, figure: Some(figure), how: how.into(), advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_belong_to_the_worse_verdict() {
        let of = |figure| Verdict::from_limits(figure, 2.0, 5.0);
        assert_eq!(
            [of(1.9), of(2.0), of(4.9), of(5.0)].map(Verdict::name),
            ["ok", "warn", "warn", "bad"]
        );
        assert_eq!(of(f64::NAN), Verdict::Ok, "no figure is no reason to warn");
    }
}
