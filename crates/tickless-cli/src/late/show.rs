//! Prints the causes of late wakeups as tables, JSON or CSV.

use crate::output::{Results, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use tickless_lab::text::time;
use tickless_trace::late::{CauseShare, Hop, Late, LateSleep};

impl Results for Late {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Late { file, threshold_ns, sleeps, late: count, causes, worst, missing, is_partial } =
            self;
        let threshold = time(*threshold_ns);
        paragraph(
            out,
            "",
            &format!("{file}: {count} of {sleeps} sleeps more than {threshold} late"),
        )?;
        if *is_partial {
            writeln!(out, "PARTIAL: it was interrupted.")?;
        }
        missing.iter().try_for_each(|missing| paragraph(out, "  - ", missing))?;
        if worst.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nThe latest:")?;
        for LateSleep { thread, pid, cpu, due_ns, late_ns, hops } in worst {
            let hops: Vec<String> = hops
                .iter()
                .map(|hop| format!("{} {} ({})", hop.hop, time(hop.ns), hop.cause))
                .collect();
            let due = *due_ns as f64 / 1e9;
            let text = format!("{thread}-{pid} on CPU {cpu} at {due:.6}: {}: ", time(*late_ns));
            paragraph(out, "  - ", &(text + &hops.join(", ")))?;
        }
        self::causes(causes, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv(
            "cause,sleeps,ns,percent",
            self.causes.iter().map(|of| {
                let CauseShare { cause, sleeps, ns, percent } = of;
                (cause, sleeps, ns, percent)
            }),
            out,
        )
    }
}

/// Writes the steps of one late wakeup from the deadline to the running thread, each with its
/// duration and its cause.
pub(crate) fn hops(hops: &[Hop], out: &mut dyn Write) -> io::Result<()> {
    hops.iter().try_for_each(|Hop { hop, ns, cause }| {
        paragraph(out, "  - ", &format!("{hop}: {} ({cause})", time(*ns)))
    })
}

/// Writes how much each cause contributed to the lateness of all late wakeups.
pub(crate) fn causes(causes: &[CauseShare], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nWhat all lateness over the threshold was spent on:")?;
    let mut table = bare(&["share", "time", "sleeps", "cause"], 0);
    if let Some(cause) = table.column_mut(3) {
        cause.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    const SHOWN: usize = 15;
    for CauseShare { cause, sleeps, ns, percent } in causes.iter().take(SHOWN) {
        table.add_row([format!("{percent:.1} %"), time(*ns), sleeps.to_string(), cause.clone()]);
    }
    write_table(&table, out)
}
