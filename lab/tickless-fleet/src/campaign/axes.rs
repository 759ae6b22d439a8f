//! The content of a campaign's file, a TOML file that requests many computations. The keys are
//! described in docs/book/src/fleet.md.

use super::cell::{HZ_MAX, Kind, StudyName};
use super::error::CampaignError;
use super::numbers::Numbers;
use crate::clock::Clock;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use std::fmt::Debug;
use std::num::NonZeroU32;
use tickless_machine::size::CPUS_MAX;
use tickless_trace::replay::ReplayPolicy;

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Campaign {
    pub name: String,
    pub simulate: Option<Axes>,
    pub replay: Option<Axes>,
    pub project: Option<Axes>,
}

/// A table of a campaign's file: the values on each axis, which is a parameter. [`Kind::axes`]
/// lists the axes that a kind of cell has.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Axes {
    #[serde(deserialize_with = "list")]
    pub studies: Vec<StudyName>,
    #[serde(deserialize_with = "list")]
    pub traces: Vec<String>,
    #[serde(deserialize_with = "list")]
    pub machines: Vec<String>,
    pub cpus: Option<Numbers>,
    #[serde(deserialize_with = "list")]
    pub clocks: Vec<Clock>,
    #[serde(deserialize_with = "list")]
    pub policies: Vec<ReplayPolicy>,
    pub hz: Option<Numbers>,
    pub seeds: Option<Numbers>,
    pub rounds: Option<NonZeroU32>,
    pub messages: Option<NonZeroU32>,
    pub inference: Option<bool>,
}

impl Campaign {
    /// Parses a campaign's file. An error names the line if the syntax is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Campaign, CampaignError> {
        let wrong = |line, what| CampaignError { file: file.to_string(), line, what };
        let campaign: Campaign = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            wrong(Some(line), error.message().to_string())
        })?;
        for (kind, axes) in campaign.tables() {
            axes.check(kind).map_err(|what| wrong(None, format!("{}.{what}", kind.name())))?;
        }
        Ok(campaign)
    }

    fn tables(&self) -> impl Iterator<Item = (Kind, &Axes)> {
        let tables = [&self.simulate, &self.replay, &self.project];
        Kind::ALL.into_iter().zip(tables).filter_map(|(kind, axes)| Some((kind, axes.as_ref()?)))
    }

    pub fn into_tables(self) -> impl Iterator<Item = (Kind, Axes)> {
        let tables = [self.simulate, self.replay, self.project];
        Kind::ALL.into_iter().zip(tables).filter_map(|(kind, axes)| Some((kind, axes?)))
    }
}

impl Axes {
    /// Checks that the required axes are given, that all given ones belong to this kind of table,
    /// and that numbers are in their ranges.
    fn check(&self, kind: Kind) -> Result<(), String> {
        let (required, optional) = kind.axes();
        let given = self.given();
        if let Some(axis) = required.iter().find(|axis| !given.contains(axis)) {
            return Err(format!("{axis} is missing"));
        }
        let is_known = |axis: &&&str| required.contains(axis) || optional.contains(axis);
        if let Some(axis) = given.iter().find(|axis| !is_known(axis)) {
            let known = [required, optional].concat().join(", ");
            return Err(format!("{axis} is no axis of such cells, which are {known}"));
        }
        let most_cpus = u64::from(CPUS_MAX);
        for (axis, numbers, most) in [("cpus", &self.cpus, most_cpus), ("hz", &self.hz, HZ_MAX)] {
            let outside = |number: &u64| !(1..=most).contains(number);
            if let Some(number) = numbers.iter().flat_map(Numbers::iter).find(outside) {
                return Err(format!("{axis}: {number} is not a number from 1 to {most}"));
            }
        }
        Ok(())
    }

    /// Returns the names of the axes that the table has.
    fn given(&self) -> Vec<&'static str> {
        let axes = [
            ("studies", !self.studies.is_empty()),
            ("traces", !self.traces.is_empty()),
            ("machines", !self.machines.is_empty()),
            ("cpus", self.cpus.is_some()),
            ("clocks", !self.clocks.is_empty()),
            ("policies", !self.policies.is_empty()),
            ("hz", self.hz.is_some()),
            ("seeds", self.seeds.is_some()),
            ("rounds", self.rounds.is_some()),
            ("messages", self.messages.is_some()),
            ("inference", self.inference.is_some()),
        ];
        axes.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect()
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
