//! One cell of a sweep: a study, simulated on one machine with one number of CPUs, policy, tick
//! rate and seed.
//!
//! A cell is simulated on one thread. The result depends only on the cell and its machine, so it is
//! equal on every computer. A failure, even a panic in the simulated machine, becomes the result of
//! that cell and does not affect other cells.

use crate::row::{Figure, Row};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tickless_lab::studies::rearm::model as rearm;
use tickless_lab::studies::{self, STUDIES, Study, schedule};
use tickless_machine::size::exactly;
use tickless_machine::spec::Spec;
use tickless_trace::replay::ReplayPolicy;

/// The greatest tick rate of a simulated machine, in ticks a second.
pub const HZ_MAX: u32 = 100_000;

type Figures = Result<Vec<Figure>, String>;

/// The name of a study that a cell can run: one of [`STUDIES`], or `schedule`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StudyName(&'static str);

impl StudyName {
    pub const REARM: StudyName = StudyName("rearm");
    pub const SCHEDULE: StudyName = StudyName("schedule");

    pub fn all() -> impl Iterator<Item = StudyName> {
        STUDIES.iter().map(|study| StudyName(study.name)).chain([StudyName::SCHEDULE])
    }

    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The policies from which a cell can choose one for this study. Empty for a study that
    /// always runs under all policies that it knows.
    pub fn policies(self) -> &'static [ReplayPolicy] {
        match self {
            StudyName::REARM => &ReplayPolicy::DEFAULT,
            StudyName::SCHEDULE => schedule::POLICIES,
            _ => &[],
        }
    }
}

impl std::str::FromStr for StudyName {
    type Err = String;

    fn from_str(text: &str) -> Result<StudyName, String> {
        StudyName::all().find(|study| study.0 == text).ok_or_else(|| {
            let names: Vec<&str> = StudyName::all().map(StudyName::name).collect();
            format!("there is no study {text}, expected one of `{}`", names.join("`, `"))
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub study: StudyName,
    pub cpus: u16,
    /// The policy for the timer device; `None` for all that the study knows.
    pub policy: Option<ReplayPolicy>,
    /// Ticks a second; `None` for the machine's own.
    pub hz: Option<u32>,
    pub seed: u64,
    /// The number of round trips or messages that the study simulates; `None` for the study's
    /// default.
    pub length: Option<u32>,
}

impl Cell {
    /// Returns the machine that the cell runs on, where operations cost as much time as on `like`.
    ///
    /// # Errors
    ///
    /// The machine or the study does not have what the cell asks for. So no result is labelled
    /// with a number of CPUs, a policy, a rate or a length that did not run.
    pub fn machine(&self, like: &Spec) -> Result<Spec, String> {
        self.check()?;
        let mut spec = exactly(like, self.cpus).map_err(|error| error.to_string())?;
        if let Some(hz) = self.hz {
            spec = spec.with("workload.hz", f64::from(hz));
        }
        spec.seed = self.seed;
        if let Some(study) = Study::named(self.study.name()) {
            let hz: &[&str] = if self.hz.is_some() { &["workload.hz"] } else { &[] };
            spec.require(&[study.needs, hz].concat()).map_err(|error| error.to_string())?;
        }
        Ok(spec)
    }

    fn check(&self) -> Result<(), String> {
        let (name, known) = (self.study.name(), self.study.policies());
        let names = || known.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
        if let Some(policy) = self.policy.filter(|policy| !known.contains(policy)) {
            return Err(match known {
                [] => format!("study {name} always runs under all policies; leave the policy out"),
                _ => format!("study {name} knows {}, not {}", names(), policy.name()),
            });
        }
        match (self.length, self.hz) {
            (Some(0), _) => Err("a length is at least 1".to_string()),
            (Some(_), _) if known.is_empty() => {
                Err(format!("study {name} has one length; leave the length out"))
            }
            (Some(_), _) if self.study == StudyName::REARM && self.policy.is_none() => Err(
                format!("study {name} has a length under one policy; name a policy of {}", names()),
            ),
            (_, Some(hz)) if !(1..=HZ_MAX).contains(&hz) => {
                Err(format!("{hz} ticks a second; ask for 1 to {HZ_MAX}"))
            }
            _ => Ok(()),
        }
    }

    /// Simulates the study. That takes from milliseconds to minutes.
    ///
    /// # Errors
    ///
    /// Those of [`Cell::machine`], and what the study says of the machine.
    pub fn simulate(&self, like: &Spec) -> Figures {
        let spec = self.machine(like)?;
        catch("the simulation", || match (Study::named(self.study.name()), self.policy) {
            (None, _) => self.slices(&spec),
            (Some(_), Some(policy)) => self.ping_pong(&spec, policy),
            (Some(study), None) => {
                let cells = (study.cells)(&spec).map_err(|error| of_machine(&spec, error))?;
                Ok(cells.into_iter().map(|cell| figure(&cell.unpublished())).collect())
            }
        })
    }

    fn ping_pong(&self, spec: &Spec, policy: ReplayPolicy) -> Figures {
        let rounds = self.length.unwrap_or(20_000);
        let ran = rearm::run(spec, policy, rearm::Others::Watchdog, rounds);
        let ran = ran.map_err(|error| of_machine(spec, error))?;
        Ok(rearm::COLUMNS.map(|(what, unit, of)| Figure::predicted(what, unit, of(&ran))).to_vec())
    }

    fn slices(&self, spec: &Spec) -> Figures {
        let hz = self.hz.map_or_else(|| (spec.value("workload.hz") as u64).max(1), u64::from);
        let policies = self.policy.as_ref().map_or(schedule::POLICIES, std::slice::from_ref);
        let mut figures = Vec::new();
        for policy in policies {
            let load = schedule::Load::new(spec, hz, self.length.unwrap_or(20));
            let ran =
                schedule::run(spec, load, *policy).map_err(|error| of_machine(spec, error))?;
            figures.extend(schedule::COLUMNS.map(|(what, unit, of)| {
                Figure::predicted(format!("{}.{what}", policy.name()), unit, of(&ran))
            }));
        }
        Ok(figures)
    }

    /// Returns the columns that all rows of this cell share.
    pub fn labels(&self, like: &Spec) -> Row {
        Row {
            version: env!("CARGO_PKG_VERSION").to_string(),
            study: Some(self.study.name().to_string()),
            machine: Some(like.name.clone()),
            machine_hash: Some(format!("{:016x}", like.fingerprint())),
            cpus: Some(self.cpus.into()),
            policy: self.policy.map(|policy| policy.name().to_string()),
            hz: self.hz.map(i64::from),
            seed: Some(i64::try_from(self.seed).unwrap_or(i64::MAX)),
            ..Row::default()
        }
    }
}

fn of_machine(spec: &Spec, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", spec.name)
}

fn figure(cell: &studies::Cell) -> Figure {
    let finite = |value: f64| value.is_finite().then_some(value);
    let is_one = cell.low == cell.value && cell.high == cell.value;
    let spread = (!is_one).then(|| [finite(cell.low), finite(cell.high)]);
    Figure { spread, ..Figure::once(cell.id.clone(), cell.unit, cell.role.name(), cell.value) }
}

/// Computes one of many results. A panic becomes an error, so the other computations go on.
pub(crate) fn catch<T>(
    what: &str,
    compute: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("{what} panicked: {}", message.unwrap_or("without a message")))
    })
}
