//! The content of a campaign's file, a TOML file that requests many computations.

use super::{CampaignError, Numbers, StudyName};
use crate::project::Clock;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::num::NonZeroU32;
use tickless_trace::replay::ReplayPolicy;

/// A campaign's file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Campaign {
    /// The campaign's name, which no part of the program interprets.
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
    /// The studies.
    #[serde(deserialize_with = "list")]
    pub studies: Vec<StudyName>,
    /// Names of machines that come with the program, or paths of machine files, relative to the
    /// folder of the campaign's file.
    #[serde(deserialize_with = "list")]
    pub machines: Vec<String>,
    /// Numbers of CPUs; if left out, the number in each machine's file.
    #[serde(default)]
    pub cpus: Option<Numbers>,
    /// Policies for the studies `rearm` and `schedule`, which then run once for each of them. The
    /// other studies ignore it.
    #[serde(default, deserialize_with = "optional_list")]
    pub policies: Option<Vec<ReplayPolicy>>,
    /// Tick rates in Hz; if left out, the rate in each machine's file.
    #[serde(default)]
    pub hz: Option<Numbers>,
    /// Seeds of the random numbers.
    #[serde(default = "seed_zero")]
    pub seeds: Numbers,
    /// The number of round trips in the study `rearm`, if `policies` is given.
    #[serde(default = "rounds")]
    pub rounds: NonZeroU32,
    /// The number of messages from each sender to each receiver in the study `schedule`.
    #[serde(default = "messages")]
    pub messages: NonZeroU32,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<AxisValues>,
}

/// The axes of replays.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayAxes {
    /// Paths and glob patterns of traces, relative to the folder of the campaign's file.
    pub traces: Vec<String>,
    /// The policies for programming the timer device; `eager`, `lazy` and `restart-aware` if left
    /// out.
    #[serde(default = "default_policies", deserialize_with = "list")]
    pub policies: Vec<ReplayPolicy>,
    /// Whether timer operations that the trace did not record are inferred from other events.
    #[serde(default = "yes")]
    pub inference: bool,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<AxisValues>,
}

/// The axes of projections.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAxes {
    /// Paths and glob patterns of traces, relative to the folder of the campaign's file.
    pub traces: Vec<String>,
    /// Names of machines that come with the program, or paths of machine files, relative to the
    /// folder of the campaign's file.
    #[serde(deserialize_with = "list")]
    pub machines: Vec<String>,
    /// Numbers of CPUs; if left out, the number in each machine's file.
    #[serde(default)]
    pub cpus: Option<Numbers>,
    /// The clocks of the simulated kernel; `tsc` if left out.
    #[serde(default = "tsc", deserialize_with = "list")]
    pub clocks: Vec<Clock>,
    /// The policies for programming the timer device; `eager`, `lazy` and `restart-aware` if left
    /// out.
    #[serde(default = "default_policies", deserialize_with = "list")]
    pub policies: Vec<ReplayPolicy>,
    /// Seeds of the random numbers.
    #[serde(default = "seed_zero")]
    pub seeds: Numbers,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<AxisValues>,
}

/// The values of one cell (one computation) on the axes of a campaign: the parameters that it
/// varies. In an `exclude` entry of a campaign's file, it leaves out all cells that have the given
/// values.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AxisValues {
    /// The study.
    pub study: Option<StudyName>,
    /// The machine's name or file, as it is written in the campaign's file.
    pub machine: Option<String>,
    /// A hash of the machine's file. It cannot be given in an `exclude` entry.
    #[serde(skip)]
    pub machine_hash: Option<String>,
    /// The path of the trace, relative to the campaign's folder.
    pub trace: Option<String>,
    /// The number of CPUs.
    pub cpus: Option<u16>,
    /// The policy.
    pub policy: Option<ReplayPolicy>,
    /// The clock.
    pub clock: Option<Clock>,
    /// The tick rate.
    pub hz: Option<u32>,
    /// The seed.
    pub seed: Option<u64>,
}

impl Campaign {
    /// Parses the text of a campaign's file. Errors name the file as `file`.
    ///
    /// # Errors
    ///
    /// Returns a [`CampaignError`] if the text is not TOML, has an unknown key, or a value out of
    /// range.
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
    /// Returns whether a cell has all values that `self` names.
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

/// Deserialises a list. Fails if it is empty or has two equal values.
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

/// Deserialises a list as [`list`] does, for a key that may be left out.
fn optional_list<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: DeserializeOwned + PartialEq + Debug,
{
    #[derive(Deserialize)]
    #[serde(bound = "T: DeserializeOwned + PartialEq + Debug")]
    struct List<T>(#[serde(deserialize_with = "list")] Vec<T>);

    Ok(Option::<List<T>>::deserialize(deserializer)?.map(|List(list)| list))
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
