//! A plan: a campaign's file with its patterns of files and its machines resolved. Returns each
//! cell (each requested computation) by its number.

use super::file::{AxisValues, Campaign};
use super::{CampaignError, Cell, Numbers, Project, Replay, Simulate, StudyName};
use crate::row::parent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tickless_lab::input;
use tickless_lab::machines;
use tickless_machine::size::sized;
use tickless_machine::spec::Spec;

/// Everything that a campaign's cells depend on: the campaign, the texts of the machine files, and
/// the traces that its patterns match. It is stored in the folder of the results, so that the cells
/// of a trace remain if the trace is deleted later.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub version: String,
    pub campaign: Campaign,
    pub base: PathBuf,
    simulate: Vec<MachineFile>,
    project: Vec<MachineFile>,
    replayed: Vec<TraceFile>,
    projected: Vec<TraceFile>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MachineFile {
    pub name: String,
    pub text: Option<String>,
    pub hash: String,
    /// For each number of CPUs that the campaign requests, the number to which it is rounded up
    /// because a machine can have only whole cores and sockets.
    sizes: Vec<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceFile {
    pub path: String,
    /// The size of the trace in bytes; 0 if the file does not exist or its size cannot be read.
    pub bytes: u64,
}

/// The version of this program, which is hashed into each cell's key: another version computes all
/// results again.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Plan {
    pub fn read(path: &Path) -> Result<Plan, CampaignError> {
        let file = path.display().to_string();
        let text = input::read_text(path).map_err(|error| CampaignError {
            file: file.clone(),
            line: None,
            what: format!("cannot be read: {error}; name a campaign's file"),
        })?;
        Plan::new(&file, &text, parent(path))
    }

    pub fn new(file: &str, text: &str, base: &Path) -> Result<Plan, CampaignError> {
        let campaign = Campaign::parse(file, text)?;
        let wrong = |what| CampaignError { file: file.to_string(), line: None, what };
        let mut plan = Plan {
            version: VERSION.to_string(),
            base: base.to_path_buf(),
            simulate: Vec::new(),
            project: Vec::new(),
            replayed: Vec::new(),
            projected: Vec::new(),
            campaign,
        };
        let found = |files: Vec<TraceFile>, axis| match files.is_empty() {
            true => Err(empty(&format!("{axis} matches no file"))),
            false => Ok(files),
        };
        let resolve = |plan: &mut Plan| {
            let Campaign { simulate, replay, project, .. } = &plan.campaign;
            if simulate.is_none() && replay.is_none() && project.is_none() {
                return Err(empty("write a table [simulate], [replay] or [project]"));
            }
            if let Some(axes) = simulate {
                plan.simulate = machine_files(base, &axes.machines, axes.cpus.as_ref())?;
            }
            if let Some(axes) = replay {
                plan.replayed = found(trace_files(base, &axes.traces)?, "replay.traces")?;
            }
            if let Some(axes) = project {
                plan.project = machine_files(base, &axes.machines, axes.cpus.as_ref())?;
                plan.projected = found(trace_files(base, &axes.traces)?, "project.traces")?;
            }
            // Checking this many cells is enough to report `exclude` entries that leave out
            // everything.
            const CHECKED: usize = 1_000_000;
            match (0..plan.numbers()).take(CHECKED).all(|number| plan.cell(number).is_none()) {
                true => Err(empty("exclude leaves nothing")),
                false => Ok(()),
            }
        };
        resolve(&mut plan).map_err(wrong)?;
        Ok(plan)
    }

    /// Returns the number of combinations of all axes. Numbers below it identify cells, except
    /// those of excluded combinations.
    pub fn numbers(&self) -> u64 {
        let all =
            [self.simulate_axes().len(), self.replayed.len() as u64, self.project_axes().len()];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the cell of this number; `None` if the combination is excluded, has a policy that
    /// its study does not know, or has the same values as that of a smaller number.
    pub fn cell(&self, number: u64) -> Option<Cell> {
        let simulations = self.simulate_axes().len();
        let replays = self.replayed.len() as u64;
        let (cell, exclude) = if number < simulations {
            (self.simulation(number)?, &self.campaign.simulate.as_ref()?.exclude)
        } else if number - simulations < replays {
            return self.replay((number - simulations) as usize);
        } else {
            let number = number - simulations - replays;
            (self.projection(number)?, &self.campaign.project.as_ref()?.exclude)
        };
        let values = cell.values();
        let is_excluded = exclude.iter().any(|excluded| excluded.match_cell(&values));
        (!is_excluded).then_some(cell)
    }

    /// Returns the cells of shard `shard` if all cells are divided into `of` shards, in order:
    /// those of every `of`-th number, beginning with number `shard`.
    pub fn cells(&self, shard: u64, of: u64) -> impl Iterator<Item = Cell> + '_ {
        let step = usize::try_from(of.max(1)).unwrap_or(usize::MAX);
        (shard..self.numbers()).step_by(step).filter_map(|number| self.cell(number))
    }

    /// Returns a cell's machine, from the text of the machine's file at the time when the plan was
    /// made.
    pub fn machine(&self, name: &str) -> Result<Spec, String> {
        let mut all = self.simulate.iter().chain(&self.project);
        match all.find(|machine| machine.name == name).and_then(|machine| machine.text.as_ref()) {
            Some(text) => Spec::parse(name, text).map_err(|error| error.to_string()),
            None => machines::find(name).map_err(|error| error.to_string()),
        }
    }

    pub fn trace(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// Adds the traces of an earlier plan whose files have been deleted since, if the patterns of
    /// files have not changed. The cells of these traces keep their results, or fail with an error
    /// that names the missing file.
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

    pub(crate) fn is_same_campaign(&self, other: &Plan) -> bool {
        Plan { base: other.base.clone(), ..self.clone() } == *other
    }

    fn simulate_axes(&self) -> Axes<6> {
        let Some(axes) = &self.campaign.simulate else { return Axes([0; 6]) };
        Axes([
            axes.studies.len() as u64,
            self.simulate.len() as u64,
            axes.cpus.as_ref().map_or(1, Numbers::len),
            axes.policies.len().max(1) as u64,
            axes.hz.as_ref().map_or(1, Numbers::len),
            axes.seeds.len(),
        ])
    }

    fn simulation(&self, number: u64) -> Option<Cell> {
        let axes = self.campaign.simulate.as_ref()?;
        let [study, machine, size, policy, hz, seed] = self.simulate_axes().places(number);
        let study = axes.studies[study as usize];
        let machine = &self.simulate[machine as usize];
        let policy = match axes.policies.get(policy as usize) {
            Some(wanted) if !study.policies().is_empty() => {
                Some(study.policies().contains(wanted).then_some(*wanted)?)
            }
            // A study that always runs under all its policies has one cell, that of the first
            // policy.
            _ if policy > 0 => return None,
            _ => None,
        };
        let hz = match &axes.hz {
            Some(rates) => Some(u32::try_from(rates.get(hz)?).ok()?),
            None => None,
        };
        Some(Cell::Simulate(Simulate {
            study,
            machine: machine.name.clone(),
            machine_hash: machine.hash.clone(),
            cpus: machine.size(size)?,
            policy,
            hz,
            seed: axes.seeds.get(seed)?,
            length: match study {
                StudyName::REARM => policy.map(|_| axes.rounds.get()),
                StudyName::SCHEDULE => Some(axes.messages.get()),
                _ => None,
            },
        }))
    }

    fn replay(&self, place: usize) -> Option<Cell> {
        let axes = self.campaign.replay.as_ref()?;
        let TraceFile { path, bytes } = self.replayed.get(place)?.clone();
        let is_kept = |policy: &_| {
            let values = AxisValues {
                trace: Some(path.clone()),
                policy: Some(*policy),
                ..AxisValues::default()
            };
            !axes.exclude.iter().any(|excluded| excluded.match_cell(&values))
        };
        let policies: Vec<_> = axes.policies.iter().copied().filter(is_kept).collect();
        let inference = axes.inference;
        let is_any = !policies.is_empty();
        is_any.then_some(Cell::Replay(Replay { bytes, inference, policies, trace: path }))
    }

    fn project_axes(&self) -> Axes<6> {
        let Some(axes) = &self.campaign.project else { return Axes([0; 6]) };
        Axes([
            self.projected.len() as u64,
            self.project.len() as u64,
            axes.cpus.as_ref().map_or(1, Numbers::len),
            axes.clocks.len() as u64,
            axes.policies.len() as u64,
            axes.seeds.len(),
        ])
    }

    fn projection(&self, number: u64) -> Option<Cell> {
        let axes = self.campaign.project.as_ref()?;
        let [trace, machine, size, clock, policy, seed] = self.project_axes().places(number);
        let trace = self.projected.get(trace as usize)?;
        let machine = &self.project[machine as usize];
        Some(Cell::Project(Project {
            trace: trace.path.clone(),
            bytes: trace.bytes,
            machine: machine.name.clone(),
            machine_hash: machine.hash.clone(),
            cpus: machine.size(size)?,
            clock: axes.clocks[clock as usize],
            policy: axes.policies[policy as usize],
            seed: axes.seeds.get(seed)?,
        }))
    }
}

impl MachineFile {
    /// Returns the number of CPUs at this index; `None` if a smaller index has that number too, so
    /// that no cell is computed twice.
    fn size(&self, place: u64) -> Option<u16> {
        let place = usize::try_from(place).ok()?;
        let size = *self.sizes.get(place)?;
        (!self.sizes[..place].contains(&size)).then_some(size)
    }
}

/// The number of values on each axis of a campaign. Cells are all combinations of these values.
struct Axes<const N: usize>([u64; N]);

impl<const N: usize> Axes<N> {
    fn len(&self) -> u64 {
        self.0.into_iter().fold(1, u64::saturating_mul)
    }

    /// Splits a cell's number into an index for each axis. Consecutive numbers differ in the last
    /// axis first.
    fn places(&self, mut number: u64) -> [u64; N] {
        let mut places = self.0;
        for place in places.iter_mut().rev() {
            let length = (*place).max(1);
            *place = number % length;
            number /= length;
        }
        // The number is larger than that of the last cell: return an index that no axis has.
        if let (Some(first), true) = (places.first_mut(), number > 0) {
            *first = u64::MAX;
        }
        places
    }
}

fn keep(traces: &mut Vec<TraceFile>, former: &[TraceFile]) {
    let pair = |trace: &TraceFile| (trace.path.clone(), trace.bytes);
    let mut all: BTreeMap<String, u64> = former.iter().map(pair).collect();
    for (path, bytes) in traces.iter().map(pair) {
        // A size of 0 means that the file has been deleted: keep the size that the earlier plan
        // has.
        let known = all.entry(path).or_insert(bytes);
        *known = if bytes > 0 { bytes } else { *known };
    }
    *traces = all.into_iter().map(|(path, bytes)| TraceFile { path, bytes }).collect();
}

fn empty(why: &str) -> String {
    format!("there are no cells to run: {why}")
}

fn machine_files(
    base: &Path,
    names: &[String],
    cpus: Option<&Numbers>,
) -> Result<Vec<MachineFile>, String> {
    let one = |name: &String| {
        let path = base.join(name);
        let file = path.display();
        let (text, spec) = if name.contains(['.', '/']) {
            let text = input::read_text(&path)
                .map_err(|error| format!("{file} cannot be read: {error}"))?;
            let spec = Spec::parse(&file.to_string(), &text).map_err(|error| error.to_string())?;
            (Some(text), spec)
        } else {
            (None, machines::find(name).map_err(|error| error.to_string())?)
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

/// Returns the files that the patterns match, sorted, each once. A path without wildcards is
/// returned even if the file does not exist: its cell fails with an error that names the file.
fn trace_files(base: &Path, patterns: &[String]) -> Result<Vec<TraceFile>, String> {
    let mut found = BTreeMap::new();
    for pattern in patterns {
        let paths = if pattern.contains(['*', '?', '[']) {
            let full = base.join(pattern).display().to_string();
            let paths = glob::glob(&full)
                .map_err(|error| format!("{pattern:?} is not a pattern of files: {error}"))?;
            paths.filter_map(Result::ok).filter(|path| path.is_file()).collect()
        } else {
            vec![base.join(pattern)]
        };
        for path in paths {
            let bytes = path.metadata().map_or(0, |facts| facts.len());
            found.insert(path.strip_prefix(base).unwrap_or(&path).display().to_string(), bytes);
        }
    }
    Ok(found.into_iter().map(|(path, bytes)| TraceFile { path, bytes }).collect())
}
