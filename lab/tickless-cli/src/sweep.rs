//! The command `tickless sweep`, which simulates studies over many machines and parameters.

use crate::command::{Command, Exit, Failure, complain};
use crate::progress::Bar;
use crate::values::{Numbers, policy};
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use tickless_fleet::simulate::{HZ_MAX, StudyName};
use tickless_fleet::sweep::{Grid, run};
use tickless_lab::progress::Progress;
use tickless_lab::{LabError, machines};
use tickless_machine::size::CPUS_MAX;
use tickless_trace::replay::ReplayPolicy;

/// Simulate studies on all combinations of machines, sizes, policies, tick rates and seeds
///
/// Runs on all CPUs, and prints the rows of each combination as CSV as soon as those before it are
/// there, so the table is the same each time. Ctrl-C ends it after the rows that are computed. A
/// combination that fails is a row with its error. For a grid on several machines, or one that
/// keeps what it has, call `simulate` from Python.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/sweep.txt"))]
pub struct SweepArgs {
    /// The studies, which `tickless help study` lists, and `schedule`
    #[arg(required = true)]
    studies: Vec<StudyName>,
    /// The machines: names from `tickless machines`, or files; may be given several times
    #[arg(long, value_name = "NAME|FILE", required = true)]
    machine: Vec<String>,
    /// How many CPUs, such as 30,120,480; each machine's own number if left out
    #[arg(long, value_name = "LIST", value_parser = |text: &str| {
        Numbers::within(text, 1..=CPUS_MAX.into())
    })]
    cpus: Option<Numbers>,
    /// Only this policy, for rearm and schedule; may be given several times
    #[arg(long, value_parser = policy(&ReplayPolicy::ALL))]
    policy: Vec<ReplayPolicy>,
    /// Tick rates, such as 100,250,1000; each machine's own if left out
    #[arg(long, value_name = "LIST", value_parser = |text: &str| {
        Numbers::within(text, 1..=HZ_MAX.into())
    })]
    hz: Option<Numbers>,
    /// Seeds, such as 0-99, for the studies that draw by chance: cancel, deferred and schedule
    #[arg(long, value_name = "LIST", default_value = "0", value_parser = |text: &str| {
        Numbers::within(text, 0..=u64::MAX)
    })]
    seeds: Numbers,
    /// How many round trips (rearm) or messages (schedule) to simulate
    #[arg(long, value_name = "N")]
    length: Option<u32>,
    /// How many threads; all CPUs if left out
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Command for SweepArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let machines = self.machine.iter().map(|name| Ok((name.clone(), machines::find(name)?)));
        let numbers = |list: &Option<Numbers>| list.clone().map_or_else(Vec::new, |list| list.0);
        let grid = Grid {
            studies: self.studies.clone(),
            machines: machines.collect::<Result<_, LabError>>().map_err(Failure::usage)?,
            cpus: numbers(&self.cpus).into_iter().map(|it| it as u16).collect(),
            policies: self.policy.clone(),
            hz: numbers(&self.hz).into_iter().map(|it| it as u32).collect(),
            seeds: self.seeds.0.clone(),
            length: self.length,
        };
        let cells = grid.cells().map_err(Failure::usage)?;
        let threads = self.threads.or_else(|| thread::available_parallelism().ok());
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Bar::on_terminal();
        progress.stop_on_interrupt(Arc::clone(&stop));
        progress.begin("simulating", cells.len());
        let mut csv = csv::Writer::from_writer(io::stdout().lock());
        let done = run(&cells, threads.map_or(1, NonZeroUsize::get), &stop, |rows| {
            rows.into_iter().try_for_each(|row| csv.serialize(row))?;
            progress.step();
            csv.flush()
        });
        progress.end();
        let done = done.map_err(Failure::output)?;
        if done == cells.len() {
            return Ok(Exit::Success);
        }
        complain(format_args!("interrupted: {done} of {} combinations are printed", cells.len()));
        Ok(Exit::Interrupted)
    }
}
