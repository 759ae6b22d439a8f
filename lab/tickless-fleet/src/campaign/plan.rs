//! A plan: a campaign's file, with the files that its patterns match and the machines that it
//! names. Returns each cell (each requested computation) by its number.

use super::axes::{Axes, Campaign};
use super::cell::{Cell, Kind, StudyName};
use super::error::CampaignError;
use super::numbers::Numbers;
use crate::clock::Clock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tickless_lab::output::parent;
use tickless_lab::{input, machines};
use tickless_machine::size::exactly;
use tickless_machine::spec::Spec;
use tickless_trace::replay::ReplayPolicy;

/// Everything that a campaign's cells depend on: the campaign, the machines, and the traces that
/// its patterns match.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    base: PathBuf,
    /// The tables of the campaign's file, each with its machines and traces.
    tables: Vec<(Table, Axes)>,
}

#[derive(Clone, PartialEq, Debug)]
struct Table {
    kind: Kind,
    machines: Vec<MachineFile>,
    traces: Vec<TraceFile>,
}

#[derive(Clone, PartialEq, Debug)]
struct MachineFile {
    name: String,
    spec: Spec,
    hash: String,
    /// The numbers of CPUs that the campaign requests; otherwise the machine's own.
    sizes: Vec<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct TraceFile {
    path: String,
    /// The size of the trace in bytes; 0 if the file does not exist or its size cannot be read.
    bytes: u64,
}

/// This program's version, hashed into each cell's key: another version computes all results again.
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

    /// Makes a plan of the campaign's text. `base` is the folder that file names refer to.
    pub fn new(file: &str, text: &str, base: &Path) -> Result<Plan, CampaignError> {
        let campaign = Campaign::parse(file, text)?;
        let wrong = |what| CampaignError { file: file.to_string(), line: None, what };
        let resolve = |(kind, axes): (Kind, Axes)| Ok((Table::resolve(base, kind, &axes)?, axes));
        let tables = campaign.into_tables().map(resolve);
        let tables = tables.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let plan = Plan { base: base.to_path_buf(), tables };
        // If none of so many cells exists, report that no study knows any of the policies.
        const CHECKED: usize = 1_000_000;
        if plan.tables.is_empty() {
            Err(wrong(empty("write a table [simulate], [replay] or [project]")))
        } else if (0..plan.numbers()).take(CHECKED).all(|number| plan.cell(number).is_none()) {
            Err(wrong(empty("the studies know none of these policies")))
        } else {
            Ok(plan)
        }
    }

    /// Returns the number of combinations of all axes. Numbers below it identify cells.
    pub fn numbers(&self) -> u64 {
        let count = |(table, axes): &(Table, Axes)| {
            table.lengths(axes).into_iter().fold(1, u64::saturating_mul)
        };
        self.tables.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Returns the cell of this number; `None` if the cell has a policy that its study does not
    /// know, or that it runs in any case.
    pub fn cell(&self, mut number: u64) -> Option<Cell> {
        for (table, axes) in &self.tables {
            let lengths = table.lengths(axes);
            let count = lengths.into_iter().fold(1, u64::saturating_mul);
            if number < count {
                return table.cell(axes, places(lengths, number));
            }
            number -= count;
        }
        None
    }

    pub fn cells(&self) -> impl Iterator<Item = Cell> + Send + '_ {
        (0..self.numbers()).filter_map(|number| self.cell(number))
    }

    /// Returns a cell's machine, as its file was when the plan was made.
    pub fn machine(&self, name: &str) -> Result<&Spec, String> {
        let mut all = self.tables.iter().flat_map(|(table, _)| &table.machines);
        let found = all.find(|machine| machine.name == name).map(|machine| &machine.spec);
        found.ok_or_else(|| format!("the campaign has no machine {name}"))
    }

    pub fn trace(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }
}

impl Table {
    /// Reads the machines and finds the traces that a table of the campaign names.
    fn resolve(base: &Path, kind: Kind, axes: &Axes) -> Result<Table, String> {
        let machines = machine_files(base, kind, &axes.machines, axes.cpus.as_ref())?;
        let traces = trace_files(base, &axes.traces)?;
        if traces.is_empty() && !axes.traces.is_empty() {
            return Err(empty(&format!("{}.traces matches no file", kind.name())));
        }
        Ok(Table { kind, machines, traces })
    }

    /// Returns the number of values on each axis. An axis without values counts as 1. So do the
    /// policies of a replay, which covers all of them in one cell.
    fn lengths(&self, axes: &Axes) -> [u64; 8] {
        let policies = if self.kind == Kind::Replay { 0 } else { policies(self.kind, axes).len() };
        let lists = [
            axes.studies.len(),
            self.traces.len(),
            self.machines.len(),
            axes.clocks.len(),
            policies,
        ];
        let [studies, traces, machines, clocks, policies] =
            lists.map(|length| length.max(1) as u64);
        let numbers = |numbers: &Option<Numbers>| numbers.as_ref().map_or(1, Numbers::len);
        let [cpus, hz, seeds] = [&axes.cpus, &axes.hz, &axes.seeds].map(numbers);
        [studies, traces, machines, cpus, clocks, policies, hz, seeds]
    }

    /// Returns the cell with these indexes on the axes; `None` if the study lacks this combination.
    fn cell(&self, axes: &Axes, places: [u64; 8]) -> Option<Cell> {
        let [study, trace, machine, size, clock, policy, hz, seed] = places;
        let mut cell = Cell { kind: self.kind, ..Cell::default() };
        cell.study = axes.studies.get(study as usize).copied();
        if let Some(TraceFile { path, bytes }) = self.traces.get(trace as usize) {
            (cell.trace, cell.bytes) = (Some(path.clone()), Some(*bytes));
        }
        if let Some(machine) = self.machines.get(machine as usize) {
            cell.machine = Some(machine.name.clone());
            cell.machine_hash = Some(machine.hash.clone());
            cell.cpus = Some(*machine.sizes.get(usize::try_from(size).ok()?)?);
            cell.seed = Some(axes.seeds.as_ref().map_or(Some(0), |seeds| seeds.get(seed))?);
        }
        cell.hz = match &axes.hz {
            Some(rates) => Some(u32::try_from(rates.get(hz)?).ok()?),
            None => None,
        };
        let known = policies(self.kind, axes);
        match (self.kind, cell.study) {
            (Kind::Simulate, Some(study)) => {
                cell.policy = match known.get(policy as usize) {
                    Some(wanted) if !study.policies().is_empty() => {
                        Some(study.policies().contains(wanted).then_some(*wanted)?)
                    }
                    // A study that always runs under all policies has one cell: the first policy's.
                    _ if policy > 0 => return None,
                    _ => None,
                };
                cell.length = match study {
                    StudyName::REARM => {
                        cell.policy.map(|_| axes.rounds.map_or(20_000, |it| it.get()))
                    }
                    StudyName::SCHEDULE => Some(axes.messages.map_or(20, |it| it.get())),
                    _ => None,
                };
            }
            (Kind::Replay, _) => {
                cell.policies = known.to_vec();
                cell.inference = Some(axes.inference.unwrap_or(true));
            }
            _ => {
                cell.clock = Some(axes.clocks.get(clock as usize).copied().unwrap_or(Clock::Tsc));
                cell.policy = known.get(policy as usize).copied();
            }
        }
        Some(cell)
    }
}

/// Returns the policies that a table names. A table of replays or projections that names none has
/// the default ones; a simulation without policies runs under all that its study knows.
fn policies(kind: Kind, axes: &Axes) -> &[ReplayPolicy] {
    match (kind, axes.policies.as_slice()) {
        (Kind::Replay | Kind::Project, []) => &ReplayPolicy::DEFAULT,
        (_, policies) => policies,
    }
}

/// Splits a cell's number into an index for each axis. The index of the last axis changes fastest.
fn places<const N: usize>(lengths: [u64; N], mut number: u64) -> [u64; N] {
    let mut places = lengths;
    for place in places.iter_mut().rev() {
        let length = *place;
        *place = number % length;
        number /= length;
    }
    places
}

fn empty(why: &str) -> String {
    format!("there are no cells to run: {why}")
}

/// Reads machines: files if a name has a dot or a slash, otherwise machines of this program.
fn machine_files(
    base: &Path,
    kind: Kind,
    names: &[String],
    cpus: Option<&Numbers>,
) -> Result<Vec<MachineFile>, String> {
    let one = |name: &String| {
        let path = base.join(name);
        let file = path.display();
        let spec = if name.contains(['.', '/']) {
            let text = input::read_text(&path)
                .map_err(|error| format!("{file} cannot be read: {error}"))?;
            Spec::parse(&file.to_string(), &text).map_err(|error| error.to_string())?
        } else {
            machines::find(name).map_err(|error| error.to_string())?
        };
        // A projection leaves the further CPUs of a socket off, so it can have any number.
        let size = |asked: u64| match kind {
            Kind::Project => Ok(asked as u16),
            _ => exactly(&spec, asked as u16).map(|_| asked as u16),
        };
        let sizes = match cpus {
            Some(cpus) => cpus.iter().map(size).collect::<Result<_, _>>(),
            None => Ok(vec![spec.costs().topology.cpus()]),
        };
        let sizes = sizes.map_err(|error| format!("{}.cpus: {error}", kind.name()))?;
        let hash = format!("{:016x}", spec.fingerprint());
        Ok(MachineFile { name: name.clone(), spec, hash, sizes })
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
