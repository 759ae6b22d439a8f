//! The result of a check.

use serde::Serialize;
use std::borrow::Cow;

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing to do.
    Ok,
    /// It could not be determined.
    Unknown,
    /// Worth a look.
    Warn,
    /// The pathology is there.
    Bad,
}

impl Verdict {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Unknown => "unknown",
            Verdict::Warn => "warn",
            Verdict::Bad => "bad",
        }
    }

    /// `Bad` or `Warn` from these limits on.
    pub fn from_limits(figure: f64, warn: f64, bad: f64) -> Verdict {
        match figure {
            figure if figure >= bad => Verdict::Bad,
            figure if figure >= warn => Verdict::Warn,
            _ => Verdict::Ok,
        }
    }
}

/// The result of a check. The keys are stable: `docs/book/src/doctor.md`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// Which check.
    pub check: &'static str,
    /// Its severity.
    pub verdict: Verdict,
    /// What was measured; null if it could not be.
    pub figure: Option<f64>,
    /// What the figure is counted in.
    pub unit: &'static str,
    /// How it was obtained, or why not.
    pub how: String,
    /// What to do; empty if there is nothing to do.
    pub advice: String,
    /// The study that explains it.
    pub study: &'static str,
}

/// The judgement of a check, without the check's name.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// Its severity.
    pub verdict: Verdict,
    /// What was measured.
    pub figure: Option<f64>,
    /// How it was obtained, or why not.
    pub how: String,
    /// What to do.
    pub advice: String,
}

/// The judgement, or the reason why it is unknown, which includes what to do about that.
pub type Judged<'a> = Result<Judgement, Cow<'a, str>>;

impl Judgement {
    /// Unknown, for this reason.
    pub fn unknown<'a>(why: impl Into<Cow<'a, str>>) -> Judged<'a> {
        Err(why.into())
    }

    /// A figure with its verdict. The advice is kept only if there is something to do.
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
