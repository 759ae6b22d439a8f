//! Prints the summary of many machines as tables, JSON or CSV.

use crate::output::{Results, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use tickless_fleet::fleet::{FIGURES, Figures, Fleet};
use tickless_lab::text::figure;

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
        let mut table = bare(&["", "5 %", "25 %", "median", "75 %", "95 %"], 1);
        for (spread, about) in self.quantiles.iter().zip(FIGURES) {
            let mut cells = vec![format!("{}, {}", about.about, spread.unit)];
            let values = [spread.p5, spread.p25, spread.p50, spread.p75, spread.p95];
            cells.extend(values.map(figure));
            table.add_row(cells);
        }
        write_table(&table, out)?;
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

/// The highest number of errors that the tables show. JSON and CSV have all.
const ERRORS_MAX: usize = 10;
