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
        let rows: Vec<Row> = self.iter().map(Row::of).collect();
        for (row, summary) in rows.iter().zip(self) {
            let file = std::path::Path::new(&summary.trace.file);
            let name = file.file_name().unwrap_or(file.as_os_str());
            table.add_row(row.cells(&name.to_string_lossy()));
        }
        let total = rows.into_iter().reduce(|sum, row| sum.plus(&row)).unwrap_or_default();
        table.add_row(total.cells("total"));
        write_table(&table, out)?;
        paragraph(out, "", "Recorded, and under each policy: writes of the timer devices.")
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "file,seconds,armed,expired,recorded_writes,policy,device_writes";
        let rows = self.iter().flat_map(|summary| {
            let Row { seconds, armed, expired, recorded, .. } = Row::of(summary);
            let of_trace = (&summary.trace.file, seconds, armed, expired, recorded);
            summary.policies.iter().map(move |it| (of_trace, it.policy, it.device_writes))
        });
        write_csv(header, rows, out)
    }
}

#[derive(Default)]
struct Row {
    seconds: f64,
    armed: u64,
    expired: u64,
    recorded: Option<u64>,
    writes: Vec<u64>,
}

impl Row {
    fn of(summary: &Summary) -> Row {
        Row {
            seconds: summary.trace.seconds,
            armed: summary.operations.start,
            expired: summary.operations.expire,
            recorded: summary.trace.recorded.device_writes,
            writes: summary.policies.iter().map(|result| result.device_writes).collect(),
        }
    }

    fn plus(&self, other: &Row) -> Row {
        let both = self.writes.iter().zip(&other.writes);
        Row {
            seconds: self.seconds + other.seconds,
            armed: self.armed + other.armed,
            expired: self.expired + other.expired,
            recorded: self.recorded.zip(other.recorded).map(|(one, other)| one + other),
            writes: both.map(|(one, other)| one + other).collect(),
        }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let recorded = self.recorded.map_or("-".to_string(), |writes| writes.to_string());
        let mut cells = vec![
            name.to_string(),
            format!("{:.2}", self.seconds),
            self.armed.to_string(),
            self.expired.to_string(),
            recorded,
        ];
        cells.extend(self.writes.iter().map(u64::to_string));
        cells
    }
}
