//! Prints the replays of several traces as a table, with a row for each and a total.

use crate::output::{Results, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use tickless_trace::replay::Summary;

impl Results for [Summary] {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = self.first() else { return Ok(()) };
        let mut header = vec!["trace", "s", "armed", "expired", "recorded"];
        header.extend(first.policies.iter().map(|result| result.policy));
        let mut table = bare(&header, 1);
        let rows: Vec<Vec<Option<f64>>> = self.iter().map(numbers).collect();
        for (numbers, summary) in rows.iter().zip(self) {
            let file = std::path::Path::new(&summary.trace.file);
            let name = file.file_name().unwrap_or(file.as_os_str());
            table.add_row(row(&name.to_string_lossy(), numbers));
        }
        let sum = |at: usize| rows.iter().map(|row| row[at]).sum::<Option<f64>>();
        table.add_row(row("total", &(0..rows[0].len()).map(sum).collect::<Vec<_>>()));
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

/// Returns the numbers of a row: seconds, timers armed and expired, and writes of timer devices,
/// recorded and under each policy.
fn numbers(summary: &Summary) -> Vec<Option<f64>> {
    let Summary { trace, operations, policies, .. } = summary;
    let counts = [Some(operations.start), Some(operations.expire), trace.recorded.device_writes];
    let writes = policies.iter().map(|result| Some(result.device_writes));
    let counts = counts.into_iter().chain(writes).map(|count| Some(count? as f64));
    [Some(trace.seconds)].into_iter().chain(counts).collect()
}

fn row(name: &str, numbers: &[Option<f64>]) -> Vec<String> {
    let text = |(at, number): (usize, &Option<f64>)| {
        let decimals = if at == 0 { 2 } else { 0 };
        number.map_or("-".to_string(), |number| format!("{number:.decimals$}"))
    };
    [name.to_string()].into_iter().chain(numbers.iter().enumerate().map(text)).collect()
}
