//! A campaign with its globs and machines looked up: its cells by number.

use super::file::{Campaign, Exclusion, twice};
use super::{CampaignError, Cell, Numbers, Project, Replay, Simulate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tickless_lab::machines;
use tickless_machine::spec::Spec;
use tickless_machine::study::sized;

/// Everything that a campaign's cells depend on: whoever has this needs no machine's file. Written
/// into the folder of its results, so that a trace that vanishes later is still one of its cells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The version of the program that made it.
    pub version: String,
    /// What the file says.
    pub campaign: Campaign,
    /// The folder of the file, from which traces are looked up.
    pub base: PathBuf,
    /// The machines of simulations.
    simulate: Vec<MachineFile>,
    /// The machines of projections.
    project: Vec<MachineFile>,
    /// The traces of replays.
    replayed: Vec<TraceFile>,
    /// The traces of projections.
    projected: Vec<TraceFile>,
}

/// A machine that a campaign names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MachineFile {
    /// As the campaign names it.
    pub name: String,
    /// What stands in the file; `None` for a machine that comes with the program.
    pub text: Option<String>,
    /// What it says, as a hash.
    pub hash: String,
    /// Its number of CPUs for each number that was asked for.
    sizes: Vec<u16>,
}

/// A trace that a campaign names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TraceFile {
    /// Its path from the campaign's folder.
    pub path: String,
    /// Its size; 0 if it could not be looked at.
    pub bytes: u64,
}

/// This program's version, which is in each key.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Studies that run for one policy at a time where policies are named, and those they know.
const BY_POLICY: [(&str, &[&str]); 2] = [
    ("rearm", &["eager", "lazy", "restart-aware"]),
    ("schedule", &["lazy", "restart-aware", "lazy-timers", "rearm-put-off", "linux-7.1"]),
];

impl Plan {
    /// Reads a campaign's file and looks up what it names.
    ///
    /// # Errors
    ///
    /// What is wrong with the file or with a machine's, with line and key; a campaign without
    /// cells.
    pub fn read(path: &Path) -> Result<Plan, CampaignError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CampaignError::Read { file: file.clone(), error })?;
        let base = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        Plan::new(&file, &text, &base)
    }

    /// The same from text; `file` is what errors call it, and paths are looked up from `base`.
    ///
    /// # Errors
    ///
    /// As [`read`](Plan::read).
    pub fn new(file: &str, text: &str, base: &Path) -> Result<Plan, CampaignError> {
        let campaign = Campaign::parse(file, text)?;
        let mut plan = Plan {
            version: VERSION.to_string(),
            base: base.to_path_buf(),
            simulate: Vec::new(),
            project: Vec::new(),
            replayed: Vec::new(),
            projected: Vec::new(),
            campaign,
        };
        if let Some(axes) = &plan.campaign.simulate {
            plan.simulate = look_up(file, base, &axes.machines, axes.cpus.as_ref())?;
        }
        if let Some(axes) = &plan.campaign.replay {
            plan.replayed = traces(file, base, &axes.traces)?;
        }
        if let Some(axes) = &plan.campaign.project {
            plan.project = look_up(file, base, &axes.machines, axes.cpus.as_ref())?;
            plan.projected = traces(file, base, &axes.traces)?;
        }
        plan.check(file)?;
        Ok(plan)
    }

    /// How many numbers there are; some of them may be excluded.
    pub fn numbers(&self) -> u64 {
        let all = [self.simulations(), self.replayed.len() as u64, self.projections()];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// The cell of this number; `None` if it is excluded, or the same as an earlier one.
    pub fn cell(&self, number: u64) -> Option<Cell> {
        if number < self.simulations() {
            return self.simulation(number).map(Cell::Simulate);
        }
        let number = number - self.simulations();
        match self.replayed.get(usize::try_from(number).ok()?) {
            Some(trace) => self.replay(trace).map(Cell::Replay),
            None => self.projection(number - self.replayed.len() as u64).map(Cell::Project),
        }
    }

    /// All cells of a shard, in order.
    pub fn cells(&self, shard: u64, of: u64) -> impl Iterator<Item = Cell> + '_ {
        let step = usize::try_from(of.max(1)).unwrap_or(usize::MAX);
        (shard..self.numbers()).step_by(step).filter_map(|number| self.cell(number))
    }

    /// The machine of a cell, as the campaign found it.
    ///
    /// # Errors
    ///
    /// What is wrong with it; nothing that was looked up when the plan was made.
    pub fn machine(&self, name: &str) -> Result<Spec, String> {
        let mut all = self.simulate.iter().chain(&self.project);
        match all.find(|machine| machine.name == name).and_then(|machine| machine.text.as_ref()) {
            Some(text) => Spec::parse(name, text).map_err(|error| error.to_string()),
            None => machines::find(name).map_err(|error| error.to_string()),
        }
    }

    /// Where a trace of a cell is.
    pub fn trace(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// Keeps traces of a former plan that are no longer there, as long as the campaign asks for
    /// the same ones: their cells say that they are gone.
    pub(crate) fn keep_traces(&mut self, former: &Plan) {
        let replayed = |campaign: &Campaign| campaign.replay.as_ref().map(|it| it.traces.clone());
        let projected = |campaign: &Campaign| campaign.project.as_ref().map(|it| it.traces.clone());
        if replayed(&self.campaign) == replayed(&former.campaign) {
            keep(&mut self.replayed, &former.replayed);
        }
        if projected(&self.campaign) == projected(&former.campaign) {
            keep(&mut self.projected, &former.projected);
        }
    }

    /// Are these plans of one campaign, wherever its file is?
    pub(crate) fn is_same_campaign(&self, other: &Plan) -> bool {
        Plan { base: other.base.clone(), ..self.clone() } == *other
    }

    fn check(&self, file: &str) -> Result<(), CampaignError> {
        let empty = |what: &str| {
            Err(CampaignError::Empty { file: file.to_string(), what: what.to_string() })
        };
        let Campaign { simulate, replay, project, .. } = &self.campaign;
        if simulate.is_none() && replay.is_none() && project.is_none() {
            return empty("write a table [simulate], [replay] or [project]");
        }
        if let Some(axes) = simulate {
            let is_none = |axis: Option<u64>| axis == Some(0);
            let policies = axes.policies.as_ref().map(|policies| policies.len() as u64);
            let axes = [
                (axes.studies.is_empty(), "simulate.studies is empty"),
                (axes.machines.is_empty(), "simulate.machines is empty"),
                (is_none(axes.cpus.as_ref().map(Numbers::len)), "simulate.cpus is empty"),
                (is_none(policies), "simulate.policies is empty"),
                (is_none(axes.hz.as_ref().map(Numbers::len)), "simulate.hz is empty"),
                (axes.seeds.is_empty(), "simulate.seeds is empty"),
            ];
            if let Some((_, what)) = axes.iter().find(|(is_empty, _)| *is_empty) {
                return empty(what);
            }
        }
        if let Some(axes) = replay {
            if self.replayed.is_empty() {
                return empty("replay.traces matches no file");
            }
            if axes.policies.is_empty() {
                return empty("replay.policies is empty");
            }
        }
        if let Some(axes) = project {
            let axes = [
                (self.projected.is_empty(), "project.traces matches no file"),
                (axes.machines.is_empty(), "project.machines is empty"),
                (axes.policies.is_empty(), "project.policies is empty"),
                (axes.clocks.is_empty(), "project.clocks is empty"),
                (axes.cpus.as_ref().is_some_and(Numbers::is_empty), "project.cpus is empty"),
                (axes.seeds.is_empty(), "project.seeds is empty"),
            ];
            if let Some((_, what)) = axes.iter().find(|(is_empty, _)| *is_empty) {
                return empty(what);
            }
        }
        // A campaign that excludes everything says so soon enough.
        const LOOKED_AT: usize = 1_000_000;
        if (0..self.numbers()).take(LOOKED_AT).all(|number| self.cell(number).is_none()) {
            return empty("exclude leaves nothing");
        }
        Ok(())
    }

    fn simulations(&self) -> u64 {
        let Some(axes) = &self.campaign.simulate else { return 0 };
        let policies = axes.policies.as_ref().map_or(1, |policies| policies.len() as u64);
        [
            axes.studies.len() as u64,
            self.simulate.len() as u64,
            axes.cpus.as_ref().map_or(1, Numbers::len),
            policies,
            axes.hz.as_ref().map_or(1, Numbers::len),
            axes.seeds.len(),
        ]
        .into_iter()
        .fold(1, u64::saturating_mul)
    }

    fn simulation(&self, number: u64) -> Option<Simulate> {
        let axes = self.campaign.simulate.as_ref()?;
        let mut digits = Digits(number);
        // The last axis comes round first.
        let seed = axes.seeds.get(digits.next(axes.seeds.len()))?;
        let hz = match &axes.hz {
            Some(hz) => Some(hz.get(digits.next(hz.len()))?),
            None => None,
        };
        let policy = axes.policies.as_ref().map(|all| (all, digits.of(all)));
        let size = digits.next(axes.cpus.as_ref().map_or(1, Numbers::len));
        let machine = &self.simulate[digits.of(&self.simulate)];
        let study = &axes.studies[digits.of(&axes.studies)];
        let known = BY_POLICY.iter().find(|(name, _)| name == study).map(|(_, known)| known);
        let policy = match (policy, known) {
            (Some((all, place)), Some(known)) => {
                Some(all[place].clone()).filter(|policy| known.contains(&policy.as_str()))?.into()
            }
            // The others would come out the same for each policy.
            (Some((_, place)), None) if place > 0 => return None,
            _ => None,
        };
        let cell = Simulate {
            study: study.clone(),
            machine: machine.name.clone(),
            machine_hash: machine.hash.clone(),
            cpus: machine.size(size)?,
            length: match study.as_str() {
                "rearm" => policy.is_some().then_some(axes.rounds),
                "schedule" => Some(axes.messages),
                _ => None,
            },
            policy,
            hz: hz.and_then(|hz| u32::try_from(hz).ok()),
            seed,
        };
        let is_excluded = axes.exclude.iter().any(|exclusion| exclusion.fits_simulation(&cell));
        (!is_excluded).then_some(cell)
    }

    fn replay(&self, trace: &TraceFile) -> Option<Replay> {
        let axes = self.campaign.replay.as_ref()?;
        let is_kept = |policy: &&String| {
            !axes.exclude.iter().any(|exclusion| {
                agrees(exclusion.trace.as_ref(), &trace.path)
                    && agrees(exclusion.policy.as_ref(), policy)
            })
        };
        let policies: Vec<String> = axes.policies.iter().filter(is_kept).cloned().collect();
        let cell = Replay {
            trace: trace.path.clone(),
            bytes: trace.bytes,
            inference: axes.inference,
            policies,
        };
        (!cell.policies.is_empty()).then_some(cell)
    }

    fn projections(&self) -> u64 {
        let Some(axes) = &self.campaign.project else { return 0 };
        [
            self.projected.len() as u64,
            self.project.len() as u64,
            axes.cpus.as_ref().map_or(1, Numbers::len),
            axes.clocks.len() as u64,
            axes.policies.len() as u64,
            axes.seeds.len(),
        ]
        .into_iter()
        .fold(1, u64::saturating_mul)
    }

    fn projection(&self, number: u64) -> Option<Project> {
        let axes = self.campaign.project.as_ref()?;
        let mut digits = Digits(number);
        let seed = axes.seeds.get(digits.next(axes.seeds.len()))?;
        let policy = axes.policies[digits.of(&axes.policies)].clone();
        let clock = axes.clocks[digits.of(&axes.clocks)].clone();
        let size = digits.next(axes.cpus.as_ref().map_or(1, Numbers::len));
        let machine = &self.project[digits.of(&self.project)];
        let trace = self.projected.get(digits.of(&self.projected))?;
        let cell = Project {
            trace: trace.path.clone(),
            bytes: trace.bytes,
            machine: machine.name.clone(),
            machine_hash: machine.hash.clone(),
            cpus: machine.size(size)?,
            clock,
            policy,
            seed,
        };
        let is_excluded = axes.exclude.iter().any(|exclusion| exclusion.fits_projection(&cell));
        (!is_excluded).then_some(cell)
    }
}

impl MachineFile {
    /// How many CPUs it has at this place of the axis; `None` if it has as many at an earlier one.
    fn size(&self, place: u64) -> Option<u16> {
        let place = usize::try_from(place).ok()?;
        let size = *self.sizes.get(place)?;
        (!self.sizes[..place].contains(&size)).then_some(size)
    }
}

impl Exclusion {
    fn fits_simulation(&self, cell: &Simulate) -> bool {
        agrees(self.study.as_ref(), &cell.study)
            && agrees(self.machine.as_ref(), &cell.machine)
            && self.cpus.is_none_or(|cpus| cpus == u64::from(cell.cpus))
            && self.policy.as_ref().is_none_or(|policy| cell.policy.as_ref() == Some(policy))
            && self.hz.is_none_or(|hz| cell.hz.map(u64::from) == Some(hz))
            && self.seed.is_none_or(|seed| seed == cell.seed)
    }

    fn fits_projection(&self, cell: &Project) -> bool {
        agrees(self.trace.as_ref(), &cell.trace)
            && agrees(self.machine.as_ref(), &cell.machine)
            && self.cpus.is_none_or(|cpus| cpus == u64::from(cell.cpus))
            && agrees(self.policy.as_ref(), &cell.policy)
            && agrees(self.clock.as_ref(), &cell.clock)
            && self.seed.is_none_or(|seed| seed == cell.seed)
    }
}

fn agrees(excluded: Option<&String>, value: &str) -> bool {
    excluded.is_none_or(|excluded| excluded == value)
}

/// A number as places on several axes, the last axis first.
struct Digits(u64);

impl Digits {
    fn next(&mut self, base: u64) -> u64 {
        let base = base.max(1);
        let digit = self.0 % base;
        self.0 /= base;
        digit
    }

    fn of<T>(&mut self, all: &[T]) -> usize {
        self.next(all.len() as u64) as usize
    }
}

fn keep(traces: &mut Vec<TraceFile>, former: &[TraceFile]) {
    let mut all: BTreeMap<String, u64> = former.iter().map(TraceFile::pair).collect();
    // What has no size cannot be looked at any more.
    let found = traces.iter().filter(|trace| trace.bytes > 0 || !all.contains_key(&trace.path));
    let found: Vec<(String, u64)> = found.map(TraceFile::pair).collect();
    all.extend(found);
    *traces = all.into_iter().map(|(path, bytes)| TraceFile { path, bytes }).collect();
}

impl TraceFile {
    fn pair(&self) -> (String, u64) {
        (self.path.clone(), self.bytes)
    }
}

fn look_up(
    file: &str,
    base: &Path,
    names: &[String],
    cpus: Option<&Numbers>,
) -> Result<Vec<MachineFile>, CampaignError> {
    let wrong = |what| CampaignError::Machine { file: file.to_string(), what };
    if let Some(name) = twice(names) {
        return Err(wrong(format!("machines: {name:?} is there twice")));
    }
    let one = |name: &String| {
        let is_file = name.contains(['.', '/']);
        let path = base.join(name);
        let text = is_file
            .then(|| std::fs::read_to_string(&path))
            .transpose()
            .map_err(|error| wrong(format!("{} cannot be read: {error}", path.display())))?;
        let spec = match &text {
            Some(text) => Spec::parse(&path.display().to_string(), text)
                .map_err(|error| wrong(error.to_string()))?,
            None => machines::find(name).map_err(|error| wrong(error.to_string()))?,
        };
        let sizes = match cpus {
            Some(cpus) => cpus.iter().map(|asked| sized(&spec, asked as u16).cpus).collect(),
            None => vec![spec.costs().topology.cpus()],
        };
        let hash = format!("{:016x}", spec.fingerprint());
        Ok(MachineFile { name: name.clone(), text, hash, sizes })
    };
    names.iter().map(one).collect()
}

/// Files that the patterns match, sorted, each once. A name without wildcards is a trace whether
/// it is there or not: if not, its cell says so.
fn traces(file: &str, base: &Path, patterns: &[String]) -> Result<Vec<TraceFile>, CampaignError> {
    let mut found = Vec::new();
    for pattern in patterns {
        let paths = if pattern.contains(['*', '?', '[']) {
            let full = base.join(pattern).display().to_string();
            let paths = glob::glob(&full).map_err(|error| CampaignError::File {
                file: file.to_string(),
                line: 0,
                what: format!("{pattern:?} is not a pattern of files: {error}"),
            })?;
            paths.filter_map(Result::ok).filter(|path| path.is_file()).collect()
        } else {
            vec![base.join(pattern)]
        };
        let one = |path: PathBuf| TraceFile {
            bytes: path.metadata().map_or(0, |facts| facts.len()),
            path: path.strip_prefix(base).unwrap_or(&path).display().to_string(),
        };
        found.extend(paths.into_iter().map(one));
    }
    found.sort();
    found.dedup_by(|one, other| one.path == other.path);
    Ok(found)
}
