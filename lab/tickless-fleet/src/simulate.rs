//! One cell of a sweep: a study, simulated on one machine with one number of CPUs, policy, tick
//! rate and seed.
//!
//! A cell is simulated on one thread. The result depends only on the cell and its machine, so it is
//! equal on every computer. A failure, even a panic in the simulated machine, becomes the result of
//! that cell and does not affect other cells.

use crate::row::{Figure, Row};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tickless_lab::studies::rearm::model as rearm;
use tickless_lab::studies::{self, Column, Role, STUDIES, Study, schedule};
use tickless_machine::machines;
use tickless_machine::size::exactly;
use tickless_machine::spec::{Origin, Spec};
use tickless_trace::replay::ReplayPolicy;

/// The greatest tick rate of a simulated machine, in ticks a second.
pub const HZ_MAX: u32 = 100_000;

/// How many messages each sender of `schedule` sends to each receiver: 50 ms, or 13 ticks of 4 ms.
const MESSAGES: u32 = 2_000;

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

    /// Whether the study draws anything by chance. Otherwise the seed changes nothing.
    const fn draws(self) -> bool {
        !matches!(self.0.as_bytes(), b"rearm" | b"clock" | b"phase")
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
    /// The policy for the timer device; `None` for the cells of a study, which have it in their
    /// names.
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
            if self.hz.is_some() && self.rate(like).is_none() {
                let name = study.name;
                return Err(format!("study {name} has tick rates of its own; leave the rate out"));
            }
            let has_all = |(name, spec): &(&'static str, Spec)| {
                spec.require(study.needs).is_ok().then_some(*name)
            };
            spec.require(study.needs).map_err(|error| {
                let others: Vec<&str> = built_in().filter_map(|one| has_all(&one)).collect();
                format!("{error}. Study {} runs on {}", study.name, others.join(", "))
            })?;
        }
        Ok(spec)
    }

    /// Returns the ticks a second that the study simulates; `None` if it has rates of its own.
    fn rate(&self, like: &Spec) -> Option<i64> {
        let study = Study::named(self.study.name());
        let has_one = study.is_none_or(|study| study.needs.contains(&"workload.hz"));
        has_one.then(|| self.hz.map_or((like.value("workload.hz") as i64).max(1), i64::from))
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
            (_, Some(hz)) if !(1..=HZ_MAX).contains(&hz) => {
                Err(format!("{hz} ticks a second; ask for 1 to {HZ_MAX}"))
            }
            _ if self.seed != 0 && !self.study.draws() => Err(format!(
                "study {name} draws nothing by chance: each seed gives the same figures; leave it \
                 out"
            )),
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
            (Some(_), Some(policy)) => {
                let mut figures = self.ping_pong(&spec, policy)?;
                let of = policy.name().replace('-', "_");
                for one in &mut figures {
                    one.role = self.role(like, &format!("{of}.{}", one.figure)).to_string();
                }
                Ok(figures)
            }
            (Some(study), None) => {
                let cells = (study.cells)(&spec).map_err(|error| of_machine(&spec, error))?;
                let figure = |cell: studies::Cell| {
                    let is_implied = cell.role == Role::Implied;
                    let role =
                        if is_implied { cell.role.name() } else { self.role(like, &cell.id) };
                    Figure { role: role.to_string(), ..figure(&cell.unpublished()) }
                };
                Ok(cells.into_iter().map(figure).collect())
            }
        })
    }

    /// Returns the role of a figure: calibrated if a number of this machine was fitted to it, and
    /// nothing was changed since then.
    fn role(&self, like: &Spec, figure: &str) -> &'static str {
        let is_changed = self.hz.is_some()
            || self.length.is_some()
            || self.cpus != like.costs().topology.cpus()
            || !built_in().any(|(_, one)| one.fingerprint() == like.fingerprint());
        let is_to = |origin: &Origin| matches!(origin, Origin::Fitted(cell) if cell == figure);
        let is_fitted = like.parameters().any(|(_, parameter)| is_to(&parameter.origin));
        let role = if is_fitted && !is_changed { Role::Calibrated } else { Role::Predicted };
        role.name()
    }

    fn ping_pong(&self, spec: &Spec, policy: ReplayPolicy) -> Figures {
        let rounds = self.length.unwrap_or(20_000);
        let ran = rearm::run(spec, policy, rearm::Others::Watchdog, rounds);
        let ran = ran.map_err(|error| of_machine(spec, error))?;
        let ticks = ran.us * f64::from(rounds) * spec.value("workload.hz") / 1e6;
        Ok(figures(&rearm::COLUMNS, &ran, ticks))
    }

    fn slices(&self, spec: &Spec) -> Figures {
        let hz = (spec.value("workload.hz") as u64).max(1);
        let policy = self.policy.ok_or("study schedule runs under one policy; name it")?;
        let load = schedule::Load::new(spec, hz, self.length.unwrap_or(MESSAGES));
        let ran = schedule::run(spec, load, policy).map_err(|error| of_machine(spec, error))?;
        Ok(figures(&schedule::COLUMNS, &ran, ran.ms * hz as f64 / 1e3))
    }

    /// Returns the columns that all rows of this cell share. `machine` is how the user named it.
    pub fn labels(&self, machine: &str, like: &Spec) -> Row {
        Row {
            version: env!("CARGO_PKG_VERSION").to_string(),
            study: Some(self.study.name().to_string()),
            machine: Some(machine.to_string()),
            machine_hash: Some(format!("{:016x}", like.fingerprint())),
            cpus: Some(self.cpus.into()),
            policy: self.policy.map(|policy| policy.name().to_string()),
            hz: self.rate(like),
            seed: Some(i64::try_from(self.seed).unwrap_or(i64::MAX)),
            ..Row::default()
        }
    }
}

/// Returns a run's figures. A rate of a run that ended within ten ticks would be that of its
/// beginning, and is left out.
fn figures<T>(columns: &[Column<T>], ran: &T, ticks: f64) -> Vec<Figure> {
    let is_seen = |unit: &str| ticks >= 10.0 || !(unit.ends_with("/s") || unit.starts_with("per "));
    let value = |unit, of: fn(&T) -> f64| if is_seen(unit) { of(ran) } else { f64::NAN };
    columns.iter().map(|&(what, unit, of)| Figure::predicted(what, unit, value(unit, of))).collect()
}

/// The machines of this program, by name.
fn built_in() -> impl Iterator<Item = (&'static str, Spec)> {
    let spec = |name: &'static str| Some((name, machines::named(name)?.ok()?));
    machines::FILES.iter().filter_map(move |(name, _)| spec(name))
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
fn catch<T>(what: &str, compute: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("{what} panicked: {}", message.unwrap_or("without a message")))
    })
}
