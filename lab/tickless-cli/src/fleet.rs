//! The command `tickless fleet`, which summarises the traces of many machines.

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, Results, bare, paragraph, print, write_csv, write_table};
use crate::progress::Bar;
use crate::traces;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tickless_fleet::fleet::{FIGURES, Figures, Fleet, fleet};
use tickless_lab::text::figure;

/// Summarise the traces of many machines
///
/// Replays each trace under three policies. Shows over all machines the quantiles of device
/// writes, wakeups and what each policy would have saved, and the ten machines that differ
/// most, with the reason. A trace that cannot be used is a row with its error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tickless fleet traces/*.txt.gz\n  \
    tickless fleet 'traces/*.dat'\n  \
    tickless fleet traces/*.txt.gz --format csv > machines.csv\n\n\
    Exit status: 0 if done, 1 if no trace can be used or the results not written, 2 for a\n\
    wrong command line, 130 if interrupted.")]
pub struct FleetArgs {
    /// The traces, one for each machine: files, or patterns such as 'traces/*.gz'
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Command for FleetArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let files = traces::expand(&self.traces)?;
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Bar::on_terminal();
        progress.stop_on_interrupt(Arc::clone(&stop));
        let fleet = fleet(&files, &stop, &progress);
        progress.end();
        if stop.load(Ordering::Relaxed) {
            let failure = Failure::new("interrupted; nothing is written");
            return Err(Failure { exit: Exit::Interrupted, ..failure });
        }
        print(&fleet, self.format)?;
        Ok(if fleet.failed() == fleet.machines.len() { Exit::Failure } else { Exit::Success })
    }
}

impl Results for Fleet {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let failed = self.failed();
        writeln!(out, "{} traces, of which {failed} cannot be used", self.machines.len())?;
        let errors = self.machines.iter().filter_map(|machine| machine.error.as_ref());
        errors.take(ERRORS_MAX).try_for_each(|error| paragraph(out, "  - ", error))?;
        if failed > ERRORS_MAX {
            paragraph(out, "  - ", "and more: --format json and csv have all of them")?;
        }
        if self.quantiles.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nEach CPU's second, over all machines:")?;
        let rows = self.quantiles.iter().zip(FIGURES).map(|(spread, about)| {
            let values = [spread.p5, spread.p25, spread.p50, spread.p75, spread.p95];
            [format!("{}, {}", about.about, spread.unit)].into_iter().chain(values.map(figure))
        });
        let header = ["", "5 %", "25 %", "median", "75 %", "95 %"];
        write_table(bare(&header, 1).add_rows(rows), out)?;
        writeln!(out, "\nMachines that differ most:")?;
        for differs in &self.differ {
            paragraph(out, "  - ", &format!("{}: {}", differs.trace, differs.why))?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut header = vec!["trace", "cpus", "seconds"];
        header.extend(FIGURES.iter().map(|figure| figure.name));
        header.extend(["arms_most", "arms_most_percent", "error"]);
        let rows = self.machines.iter().map(|machine| {
            let figures = machine.figures.as_ref();
            // Format numbers in Rust's way, which writes whole numbers without a decimal point.
            let number = |of: &dyn Fn(&Figures) -> f64| figures.map(|it| of(it).to_string());
            let known = (figures.map(|it| it.cpus), number(&|it| it.seconds));
            let compared: Vec<_> = FIGURES.iter().map(|figure| number(&figure.of)).collect();
            let arms_most = figures.map(|it| &it.arms_most);
            let share = number(&|it| it.arms_most_percent);
            (&machine.trace, known, compared, arms_most, share, &machine.error)
        });
        write_csv(&header.join(","), rows, out)
    }
}

const ERRORS_MAX: usize = 10;
