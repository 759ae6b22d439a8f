//! The content of a campaign's file, a TOML file that requests many computations. The keys are
//! described in docs/book/src/fleet.md.

use super::{CampaignError, Numbers, StudyName};
use crate::project::Clock;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::num::NonZeroU32;
use tickless_trace::replay::ReplayPolicy;

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Campaign {
    pub name: String,
    pub simulate: Option<SimulateAxes>,
    pub replay: Option<ReplayAxes>,
    pub project: Option<ProjectAxes>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulateAxes {
    #[serde(deserialize_with = "list")]
    pub studies: Vec<StudyName>,
    #[serde(deserialize_with = "list")]
    pub machines: Vec<String>,
    #[serde(default)]
    pub cpus: Option<Numbers>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<ReplayPolicy>,
    #[serde(default)]
    pub hz: Option<Numbers>,
    #[serde(default = "seed_zero")]
    pub seeds: Numbers,
    #[serde(default = "rounds")]
    pub rounds: NonZeroU32,
    #[serde(default = "messages")]
    pub messages: NonZeroU32,
    #[serde(default)]
    pub exclude: Vec<AxisValues>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayAxes {
    pub traces: Vec<String>,
    #[serde(default = "default_policies", deserialize_with = "list")]
    pub policies: Vec<ReplayPolicy>,
    #[serde(default = "yes")]
    pub inference: bool,
    #[serde(default)]
    pub exclude: Vec<AxisValues>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAxes {
    pub traces: Vec<String>,
    #[serde(deserialize_with = "list")]
    pub machines: Vec<String>,
    #[serde(default)]
    pub cpus: Option<Numbers>,
    #[serde(default = "tsc", deserialize_with = "list")]
    pub clocks: Vec<Clock>,
    #[serde(default = "default_policies", deserialize_with = "list")]
    pub policies: Vec<ReplayPolicy>,
    #[serde(default = "seed_zero")]
    pub seeds: Numbers,
    #[serde(default)]
    pub exclude: Vec<AxisValues>,
}

/// The values of one cell (one computation) on the axes of a campaign: the parameters that it
/// varies. In an `exclude` entry of a campaign's file, it leaves out all cells that have the given
/// values.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AxisValues {
    pub study: Option<StudyName>,
    pub machine: Option<String>,
    #[serde(skip)]
    pub machine_hash: Option<String>,
    pub trace: Option<String>,
    pub cpus: Option<u16>,
    pub policy: Option<ReplayPolicy>,
    pub clock: Option<Clock>,
    pub hz: Option<u32>,
    pub seed: Option<u64>,
}

impl Campaign {
    pub fn parse(file: &str, text: &str) -> Result<Campaign, CampaignError> {
        let wrong = |line, what| CampaignError { file: file.to_string(), line, what };
        let campaign: Campaign = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            wrong(Some(line), error.message().to_string())
        })?;
        let Campaign { simulate, project, .. } = &campaign;
        let simulated = simulate.as_ref().map(|axes| (axes.cpus.as_ref(), axes.hz.as_ref()));
        let (simulated_cpus, hz) = simulated.unwrap_or_default();
        let projected_cpus = project.as_ref().and_then(|axes| axes.cpus.as_ref());
        for (axis, numbers, most) in [
            ("simulate.cpus", simulated_cpus, 4_096),
            ("simulate.hz", hz, 100_000),
            ("project.cpus", projected_cpus, 4_096),
        ] {
            let outside = |number: &u64| !(1..=most).contains(number);
            if let Some(number) = numbers.and_then(|numbers| numbers.iter().find(outside)) {
                let what = format!("{axis}: {number} is not a number from 1 to {most}");
                return Err(wrong(None, what));
            }
        }
        Ok(campaign)
    }
}

impl AxisValues {
    pub(super) fn match_cell(&self, cell: &AxisValues) -> bool {
        fn agrees<T: PartialEq>(excluded: &Option<T>, value: &Option<T>) -> bool {
            excluded.is_none() || excluded == value
        }
        agrees(&self.study, &cell.study)
            && agrees(&self.machine, &cell.machine)
            && agrees(&self.trace, &cell.trace)
            && agrees(&self.cpus, &cell.cpus)
            && agrees(&self.policy, &cell.policy)
            && agrees(&self.clock, &cell.clock)
            && agrees(&self.hz, &cell.hz)
            && agrees(&self.seed, &cell.seed)
    }
}

fn list<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned + PartialEq + Debug,
{
    let list = Vec::<T>::deserialize(deserializer)?;
    if list.is_empty() {
        return Err(D::Error::custom("the list is empty; name at least one value"));
    }
    let twice = |(place, one): &(usize, &T)| list[..*place].contains(one);
    match list.iter().enumerate().find(twice) {
        Some((_, one)) => Err(D::Error::custom(format!("{one:?} is in the list twice"))),
        None => Ok(list),
    }
}

fn seed_zero() -> Numbers {
    Numbers::from(0)
}

fn default_policies() -> Vec<ReplayPolicy> {
    ReplayPolicy::DEFAULT.to_vec()
}

fn tsc() -> Vec<Clock> {
    vec![Clock::Tsc]
}

fn rounds() -> NonZeroU32 {
    NonZeroU32::new(20_000).unwrap_or(NonZeroU32::MIN)
}

fn messages() -> NonZeroU32 {
    NonZeroU32::new(20).unwrap_or(NonZeroU32::MIN)
}

const fn yes() -> bool {
    true
}
