//! A campaign's file as it is written.

use super::{CampaignError, Numbers};
use serde::{Deserialize, Serialize};
use tickless_trace::replay::ReplayPolicy;

/// What a campaign's file says.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Campaign {
    /// What it is called, for people.
    pub name: String,
    /// Studies on simulated machines.
    pub simulate: Option<SimulateAxes>,
    /// Recorded traces under other policies.
    pub replay: Option<ReplayAxes>,
    /// Recorded traces on simulated machines.
    pub project: Option<ProjectAxes>,
}

/// The axes of simulations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulateAxes {
    /// Which studies; see [`STUDIES`].
    pub studies: Vec<String>,
    /// Names of machines, or files, relative to the campaign's.
    pub machines: Vec<String>,
    /// How many CPUs; the machine's own number if left out.
    #[serde(default)]
    pub cpus: Option<Numbers>,
    /// For the studies `rearm` and `schedule`, which then run once for each that they know; the
    /// others compare what they compare.
    #[serde(default)]
    pub policies: Option<Vec<String>>,
    /// Ticks a second; the machine's own rate if left out.
    #[serde(default)]
    pub hz: Option<Numbers>,
    /// Where randomness starts.
    #[serde(default = "seed_zero")]
    pub seeds: Numbers,
    /// Round trips of `rearm` where it runs for one policy.
    #[serde(default = "rounds")]
    pub rounds: u32,
    /// Messages from each sender to each receiver in `schedule`.
    #[serde(default = "messages")]
    pub messages: u32,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<Exclusion>,
}

/// The axes of replays.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayAxes {
    /// Files and globs, relative to the campaign's file.
    pub traces: Vec<String>,
    /// The three that removals tell apart if left out.
    #[serde(default = "usual_policies")]
    pub policies: Vec<String>,
    /// Are operations without a record inferred?
    #[serde(default = "yes")]
    pub inference: bool,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<Exclusion>,
}

/// The axes of projections.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAxes {
    /// Files and globs, relative to the campaign's file.
    pub traces: Vec<String>,
    /// Names of machines, or files, relative to the campaign's.
    pub machines: Vec<String>,
    /// How many CPUs; the machine's own number if left out.
    #[serde(default)]
    pub cpus: Option<Numbers>,
    /// `tsc`, `hpet`, `combined`; `tsc` if left out.
    #[serde(default = "tsc")]
    pub clocks: Vec<String>,
    /// The three that removals tell apart if left out.
    #[serde(default = "usual_policies")]
    pub policies: Vec<String>,
    /// Where randomness starts.
    #[serde(default = "seed_zero")]
    pub seeds: Numbers,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<Exclusion>,
}

/// Cells that are left out: those which agree with everything that is said here.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exclusion {
    /// The study.
    pub study: Option<String>,
    /// The machine, as the axis names it.
    pub machine: Option<String>,
    /// The trace, as its path is shown.
    pub trace: Option<String>,
    /// The number of CPUs.
    pub cpus: Option<u64>,
    /// The policy.
    pub policy: Option<String>,
    /// The clock.
    pub clock: Option<String>,
    /// The tick rate.
    pub hz: Option<u64>,
    /// The seed.
    pub seed: Option<u64>,
}

/// The studies that a campaign can run.
pub const STUDIES: [&str; 6] = ["rearm", "clock", "cancel", "deferred", "phase", "schedule"];

impl Campaign {
    /// Reads a campaign's text; `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// Says the line of what is not TOML, of a key that nothing reads, and of a value that cannot
    /// be.
    pub fn parse(file: &str, text: &str) -> Result<Campaign, CampaignError> {
        let campaign: Campaign = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            let what = error.message().to_string();
            CampaignError::File { file: file.to_string(), line, what }
        })?;
        campaign.check(file)?;
        Ok(campaign)
    }

    fn check(&self, file: &str) -> Result<(), CampaignError> {
        let wrong = |what| Err(CampaignError::File { file: file.to_string(), line: 0, what });
        let names = |axis: &str, given: &[String], known: &[&str]| {
            let unknown = given.iter().find(|name| !known.contains(&name.as_str()));
            match unknown {
                Some(name) => {
                    wrong(format!("{axis}: there is no {name:?}; there are {}", known.join(", ")))
                }
                None => match twice(given) {
                    Some(name) => wrong(format!("{axis}: {name:?} is there twice")),
                    None => Ok(()),
                },
            }
        };
        let policies = ReplayPolicy::ALL.map(ReplayPolicy::name);
        if let Some(axes) = &self.simulate {
            names("simulate.studies", &axes.studies, &STUDIES)?;
            names("simulate.policies", axes.policies.as_deref().unwrap_or_default(), &policies)?;
            counts(file, "simulate.cpus", axes.cpus.as_ref(), 4_096)?;
            counts(file, "simulate.hz", axes.hz.as_ref(), 100_000)?;
        }
        if let Some(axes) = &self.replay {
            names("replay.policies", &axes.policies, &policies)?;
        }
        if let Some(axes) = &self.project {
            names("project.policies", &axes.policies, &policies)?;
            names("project.clocks", &axes.clocks, &["tsc", "hpet", "combined"])?;
            counts(file, "project.cpus", axes.cpus.as_ref(), 4_096)?;
        }
        Ok(())
    }
}

fn counts(file: &str, axis: &str, given: Option<&Numbers>, most: u64) -> Result<(), CampaignError> {
    let Some(given) = given else { return Ok(()) };
    match given.iter().find(|one| !(1..=most).contains(one)) {
        Some(one) => Err(CampaignError::File {
            file: file.to_string(),
            line: 0,
            what: format!("{axis}: {one} is not a number from 1 to {most}"),
        }),
        None => Ok(()),
    }
}

/// A name that stands in a list more than once.
pub(super) fn twice(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)).map(|(_, it)| it)
}

fn seed_zero() -> Numbers {
    "0".parse().unwrap_or_default()
}

fn usual_policies() -> Vec<String> {
    ReplayPolicy::USUAL.map(|policy| policy.name().to_string()).to_vec()
}

fn tsc() -> Vec<String> {
    vec!["tsc".to_string()]
}

const fn rounds() -> u32 {
    20_000
}

const fn messages() -> u32 {
    20
}

const fn yes() -> bool {
    true
}
