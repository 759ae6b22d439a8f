//! Formats the rows of a table as words, for printed tables and for the live screen.

use tickless_lab::text::time;
use tickless_top::table::{By, Period, Table, TableRow};

pub(super) fn header(by: By) -> Vec<&'static str> {
    let mut header = vec!["process"];
    if by == By::Callback {
        header.push("callback");
    }
    header.extend([
        "pid", "cpu", "switch", "wakes", "writes", "armed", "again", "gone", "fired", "kind",
        "ahead", "period",
    ]);
    header
}

/// Returns the index of the first column with numbers. The columns before it have names.
pub(super) fn numbers_from(by: By) -> usize {
    match by {
        By::Process => 1,
        By::Callback => 2,
    }
}

pub(super) fn cells(table: &Table, row: &TableRow, by: By) -> Vec<String> {
    let rate = |count: u64| rate(table.per_second(count));
    let known = |count: Option<u64>| count.map_or("-".to_string(), rate);
    let mut cells = vec![row.process.clone()];
    if by == By::Callback {
        cells.push(row.function.clone().unwrap_or_default());
    }
    cells.extend([
        if row.pid > 0 { row.pid.to_string() } else { String::new() },
        row.cpu_ns.map_or("-".to_string(), |ns| format!("{:.1}%", table.per_second(ns) / 1e7)),
        known(row.switches),
        known(row.wakes),
        known(row.device_writes),
        rate(row.arms),
        rate(row.rearms),
        row.cancelled_percent.map_or("-".to_string(), |share| format!("{share:.0}%")),
        rate(row.expiries),
        row.family.name().to_string(),
        row.distance_ns.map_or("-".to_string(), |ns| time(ns).replace(' ', "")),
        row.periods.first().map_or("-".to_string(), period),
    ]);
    cells
}

pub(super) fn total(table: &Table, by: By) -> Vec<String> {
    let mut cells = cells(table, &table.total(), by);
    let kind = cells.len() - 3;
    cells[kind..].fill(String::new());
    cells
}

/// Returns the command line of a process; `None` if there is none. A program can write anything
/// into its command line, so control characters, which could command the terminal, are replaced.
pub(super) fn command(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|it| !it.is_empty())?;
    let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
    Some(line.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
}

/// Formats a period: its length, how many timers have it, and a mark if some expire together.
fn period(Period { period_ns, timers, meeting, .. }: &Period) -> String {
    let many = if *timers > 1 { format!("x{timers}") } else { String::new() };
    let meet = if *meeting > 0 { "!" } else { "" };
    format!("{}{many}{meet}", time(*period_ns).replace(' ', ""))
}

/// Describes whose timers expire together with those of a row's most frequent period.
pub(super) fn collision(row: &TableRow) -> Option<String> {
    let first = row.periods.first().filter(|period| period.meeting > 0)?;
    let (process, pid) = (&row.process, row.pid);
    let who = if pid > 0 { format!("{process} ({pid})") } else { process.clone() };
    let named = |it: &String| if *it == who { "another of its own".into() } else { it.clone() };
    let with: Vec<String> = first.with.iter().map(named).collect();
    Some(format!("{who} every {}: with {}", time(first.period_ns), with.join(", ")))
}

/// Lays rows out in columns that fit `width` if they can. Leaves columns of numbers out before it
/// cuts names short, and never breaks a cell into two lines. The first row has the headings, and
/// the first `names` columns have names.
pub(super) fn lay_out(mut rows: Vec<Vec<String>>, names: usize, width: usize) -> Vec<String> {
    const DISPENSABLE: [&str; 4] = ["kind", "again", "switch", "ahead"];
    const NAME_ENOUGH: usize = 15;
    const NAME_MIN: usize = 8;
    let longest = |rows: &[Vec<String>], column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    loop {
        let columns = 0..rows.first().map_or(0, Vec::len);
        let widths: Vec<usize> = columns.map(|column| longest(&rows, column)).collect();
        let excess = (widths.iter().sum::<usize>() + widths.len()).saturating_sub(width + 1);
        let name = (0..names).max_by_key(|&column| widths[column]).unwrap_or(0);
        let dispensable =
            DISPENSABLE.iter().find_map(|it| rows.first()?.iter().position(|cell| cell == it));
        let enough = if dispensable.is_some() { NAME_ENOUGH } else { NAME_MIN };
        if excess > 0 && widths[name] > enough {
            let most = widths[name].saturating_sub(excess).max(enough);
            rows.iter_mut().for_each(|row| shorten(&mut row[name], most));
        } else if let Some(column) = dispensable.filter(|_| excess > 0) {
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
        } else {
            let line = |row: Vec<String>| {
                let cells = row.into_iter().zip(&widths).enumerate();
                let padded = cells.map(|(at, (cell, &width))| match at < names {
                    true => format!("{cell:<width$}"),
                    false => format!("{cell:>width$}"),
                });
                padded.collect::<Vec<_>>().join(" ")
            };
            return rows.into_iter().map(line).collect();
        }
    }
}

fn shorten(name: &mut String, most: usize) {
    if name.chars().count() > most {
        *name = name.chars().take(most - 1).chain(['~']).collect();
    }
}

/// Formats a rate in at most five characters.
fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_string(),
        rate if rate < 9.95 => format!("{rate:.1}"),
        rate if rate < 99_999.5 => format!("{rate:.0}"),
        rate if rate < 9_999_500.0 => format!("{:.0}k", rate / 1e3),
        rate => format!("{:.0}M", rate / 1e6),
    }
}

/// Returns one line with the rate of timer events, the CPU time for counting them, and what
/// was not counted.
pub(super) fn summary(table: &Table) -> String {
    let events = rate(table.per_second(table.timer_events));
    let kernel = match table.kernel_percent {
        Some(percent) => format!("{percent:.1} % in the kernel, "),
        None => String::new(),
    };
    let own = format!("{:.1} % here", table.own_percent);
    let mut text = format!("{:.1} s: {events} timer events/s. Cost: {kernel}{own}.", table.seconds);
    if table.refused > 0 {
        text += &format!(" No place for {}.", table.refused);
    }
    if table.missed > 0 {
        text += &format!(" {} events missed.", table.missed);
    }
    let unseen = table.total().unseen;
    if unseen > 0 || table.unseen_percent >= 0.05 {
        let (percent, after) = (table.unseen_percent, &table.unseen_after);
        text += &format!(
            " UNSEEN: the kernel showed nothing for {percent:.1} % of a CPU's time, last when \
             {after} ran. Timers that ended then are missing from fired or gone; known are \
             {unseen}."
        );
    }
    if table.is_partial {
        text += " PARTIAL: it was interrupted.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tickless_top::snapshot::Snapshot;
    use tickless_top::table::between;

    #[test]
    fn rates_fit_their_column() {
        for (rate_per_second, want) in [
            (0.0, "0"),
            (0.04, "0.0"),
            (9.94, "9.9"),
            (99.6, "100"),
            (99_999.0, "99999"),
            (123_456.0, "123k"),
            (12_345_678.0, "12M"),
        ] {
            assert_eq!(rate(rate_per_second), want);
        }
    }

    #[test]
    fn what_was_not_seen_is_below_the_table() {
        let mut table = between(&Snapshot::default(), &Snapshot::default(), By::Process);
        assert!(!summary(&table).contains("UNSEEN") && !summary(&table).contains("missed"));
        table.rows.push(TableRow { unseen: 6, ..TableRow::default() });
        (table.missed, table.unseen_percent) = (3, 1.24);
        table.unseen_after = "agent".to_string();
        let text = summary(&table);
        assert!(text.contains(" 3 events missed.") && text.contains("nothing for 1.2 %"), "{text}");
        assert!(text.contains("agent ran. Timers") && text.ends_with("known are 6."), "{text}");
    }

    #[test]
    fn a_period_has_its_timers_and_a_mark_for_common_expiries() {
        let with = || BTreeSet::from(["db (9)".to_string()]);
        let of = |timers, meeting| {
            period(&Period { period_ns: 4_000_000, timers, meeting, with: with() })
        };
        assert_eq!([of(1, 0), of(2, 0), of(3, 2)], ["4.0ms", "4.0msx2", "4.0msx3!"]);
        let periods = vec![Period { period_ns: 4_000_000, timers: 1, meeting: 1, with: with() }];
        let row = TableRow { process: "web".to_string(), pid: 7, periods, ..TableRow::default() };
        assert_eq!(collision(&row).unwrap(), "web (7) every 4.0 ms: with db (9)");
    }

    /// Goal: no name is broken into two lines, whatever the width and the numbers; columns that can
    /// be spared go before more than the end of a name does.
    #[test]
    fn names_are_never_broken() {
        let header = header(By::Process).into_iter().map(str::to_string).collect();
        let row = "a_process_of_15 4194304 199.9% 99999 12345 99999k 99999k 99999 100% 99999 queue \
                   10.0ms 100msx99!";
        let rows = vec![header, row.split_whitespace().map(str::to_string).collect()];
        for (width, gone) in [(200, ""), (80, "kind"), (50, "ahead")] {
            let lines = lay_out(rows.clone(), 1, width);
            assert_eq!(lines.len(), 2);
            assert!(!lines[0].contains("kind") || gone.is_empty(), "{lines:#?}");
            assert!(lines[1].starts_with("a_proce") && lines[1].contains("4194304"), "{lines:#?}");
            let most = lines.iter().map(|line| line.len()).max().unwrap();
            assert!(most <= width || width == 50, "{lines:#?}");
        }
    }
}
