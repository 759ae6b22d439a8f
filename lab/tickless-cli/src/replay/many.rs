//! Prints the replays of several traces as a table, with a row for each and a total.

use super::show::known;
use crate::output::{Results, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use std::path::Path;
use tickless_trace::replay::Summary;

impl Results for [Summary] {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = self.first() else { return Ok(()) };
        let mut header = vec!["trace", "s", "armed", "expired", "recorded"];
        header.extend(first.policies.iter().map(|result| result.policy));
        let mut table = bare(&header, 1);
        for summary in self {
            let file = Path::new(&summary.trace.file);
            let name = file.file_name().unwrap_or(file.as_os_str());
            table.add_row(row(&name.to_string_lossy(), summary.trace.seconds, counts(summary)));
        }
        let seconds = self.iter().map(|summary| summary.trace.seconds).sum();
        let sum = |at: usize| self.iter().map(|summary| counts(summary)[at]).sum();
        table.add_row(row("total", seconds, (0..counts(first).len()).map(sum).collect()));
        write_table(&table, out)?;
        paragraph(out, "", "Recorded, and under each policy: writes of the timer devices.")
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "file,seconds,armed,expired,recorded_writes,policy,device_writes";
        let rows = self.iter().flat_map(|summary| {
            let Summary { trace, operations, .. } = summary;
            let counts = (operations.start, operations.expire, trace.recorded.device_writes);
            let of_trace = (&trace.file, trace.seconds, counts);
            summary.policies.iter().map(move |it| (of_trace, it.policy, it.device_writes))
        });
        write_csv(header, rows, out)
    }
}

/// Returns how many timers were armed and how many expired, and the number of device writes: the
/// recorded one, and the one under each policy.
fn counts(Summary { trace, operations, policies, .. }: &Summary) -> Vec<Option<u64>> {
    let counts = [Some(operations.start), Some(operations.expire), trace.recorded.device_writes];
    counts.into_iter().chain(policies.iter().map(|result| Some(result.device_writes))).collect()
}

fn row(name: &str, seconds: f64, counts: Vec<Option<u64>>) -> impl Iterator<Item = String> {
    [name.to_string(), format!("{seconds:.2}")].into_iter().chain(counts.into_iter().map(known))
}
