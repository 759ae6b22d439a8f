//! Simulates all combinations of machines, sizes, policies, tick rates and seeds, in parallel.

use crate::row::Row;
use crate::simulate::{Cell, StudyName};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use tickless_machine::spec::Spec;
use tickless_trace::replay::ReplayPolicy;

/// A machine, with the name that the user gave it.
pub type Machine = (String, Spec);

/// Values of each parameter. An empty list of CPUs or tick rates stands for each machine's own, and
/// one of policies for all that a study knows.
#[derive(Debug)]
pub struct Grid {
    pub studies: Vec<StudyName>,
    pub machines: Vec<Machine>,
    pub cpus: Vec<u16>,
    pub policies: Vec<ReplayPolicy>,
    pub hz: Vec<u32>,
    pub seeds: Vec<u64>,
    pub length: Option<u32>,
}

/// The number of cells that a grid can have. Their results would take weeks.
const CELLS_MAX: usize = 10_000_000;

impl Grid {
    /// Returns all cells, each with its machine. The seed changes fastest. A study runs under those
    /// of the policies that it knows.
    ///
    /// # Errors
    ///
    /// A study or a machine does not have what one of the cells asks for, or there are too many.
    pub fn cells(&self) -> Result<Vec<(&Machine, Cell)>, String> {
        let lengths = [self.machines.len(), self.cpus.len(), self.policies.len(), self.hz.len()];
        let each = lengths.into_iter().map(|length| length.max(1));
        let most = each.fold(self.seeds.len(), usize::saturating_mul);
        let most = most.saturating_mul(self.studies.len());
        if most > CELLS_MAX {
            return Err(format!("{most} cells are more than {CELLS_MAX}; ask for fewer seeds"));
        }
        let length = self.length;
        let mut cells = Vec::new();
        for &study in &self.studies {
            let policies = self.policies_of(study)?;
            for machine in &self.machines {
                let own = [machine.1.costs().topology.cpus()];
                let sizes = if self.cpus.is_empty() { &own[..] } else { &self.cpus };
                for (&cpus, &policy) in pairs(sizes, &policies) {
                    for hz in options(&self.hz) {
                        let cell = |seed| Cell { study, cpus, policy, hz, seed, length };
                        // No seed but 0 is refused if the greatest is not.
                        cell(self.seeds.iter().copied().max().unwrap_or(0)).machine(&machine.1)?;
                        cells.extend(self.seeds.iter().map(|&seed| (machine, cell(seed))));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn policies_of(&self, study: StudyName) -> Result<Vec<Option<ReplayPolicy>>, String> {
        let known = study.policies();
        if self.studies.iter().all(|study| study.policies().is_empty()) {
            return Ok(options(&self.policies));
        }
        let chosen = self.policies.iter().filter(|policy| known.contains(policy));
        let chosen: Vec<_> = chosen.copied().map(Some).collect();
        match chosen.is_empty() {
            false => Ok(chosen),
            true if known.is_empty() || self.policies.is_empty() => Ok(options(known)),
            true => Err(format!("study {} knows none of these policies", study.name())),
        }
    }
}

fn options<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    match values {
        [] => vec![None],
        _ => values.iter().copied().map(Some).collect(),
    }
}

fn pairs<'a, A, B>(all: &'a [A], each: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    all.iter().flat_map(move |one| each.iter().map(move |other| (one, other)))
}

/// Simulates cells on so many threads, and passes the rows of each to `each`, in the order of the
/// cells. If `stop` is set, ends after the cells that have begun. Returns how many cells were
/// passed on.
///
/// # Errors
///
/// The first error of `each`.
pub fn run(
    cells: &[(&Machine, Cell)],
    threads: usize,
    stop: &AtomicBool,
    mut each: impl FnMut(Vec<Row>) -> io::Result<()>,
) -> io::Result<usize> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let simulate = |sender: mpsc::Sender<(usize, Vec<Row>)>| {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(((name, like), cell)) = cells.get(number) else { return };
            let rows = cell.labels(name, like).rows(cell.simulate(like));
            if sender.send((number, rows)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(move || simulate(sender));
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut passed = 0;
        for (number, rows) in receiver {
            early.insert(number, rows);
            while let Some(rows) = early.remove(&passed) {
                each(rows)?;
                passed += 1;
            }
        }
        Ok(passed)
    })
}
