//! What moved, as table, JSON or CSV.

use super::change::{Change, Comparison, Verdict};
use super::results::Figure;
use crate::output::{Format, bare, paragraph, print};
use std::io::{self, Write};
use tickless_lab::text::figure;

/// Which figures are in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Those that moved.
    Moved,
    /// All.
    All,
}

/// Prints what moved.
pub fn show(
    comparison: &Comparison,
    shown: Shown,
    format: Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => table(comparison, shown, out),
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, comparison)?;
            writeln!(out)
        }
        Format::Csv => csv(comparison, out),
    }
}

fn table(comparison: &Comparison, shown: Shown, out: &mut dyn Write) -> io::Result<()> {
    let Comparison { kind, a, b, changes, only_in_a, only_in_b } = comparison;
    let is_shown = |change: &&Change| shown == Shown::All || change.verdict != Verdict::Same;
    let mut table = bare(&["figure", "a", "spread", "b", "spread", "unit", "change"], 1);
    for change in changes.iter().filter(is_shown) {
        table.add_row([
            change.figure.clone(),
            figure(change.a.value),
            spread(&change.a),
            figure(change.b.value),
            spread(&change.b),
            change.unit.clone(),
            moved(change),
        ]);
    }
    if !table.is_empty() {
        print(&table, out)?;
    }
    for (of, only) in [(a, only_in_a), (b, only_in_b)] {
        if !only.is_empty() {
            paragraph(out, "", &format!("only in {of}: {}", only.join(", ")))?;
        }
    }
    let count = |verdict| changes.iter().filter(|change| change.verdict == verdict).count();
    let (grew, shrank, same) = (count(Verdict::Grew), count(Verdict::Shrank), count(Verdict::Same));
    let text = format!(
        "{} of {a} (a) and {b} (b): {grew} figures grew, {shrank} shrank, {same} are within both \
         spreads",
        kind.name()
    );
    paragraph(out, "", &text)
}

/// From the least to the greatest; nothing where it was measured once.
pub(super) fn spread(of: &Figure) -> String {
    match of.low == of.high {
        true => "-".to_string(),
        false => format!("{}..{}", figure(of.low), figure(of.high)),
    }
}

/// By how much, and what that is worth.
pub(super) fn moved(change: &Change) -> String {
    let by = match change.percent {
        Some(percent) => format!("{percent:+.1} %"),
        None => "from 0".to_string(),
    };
    match change.verdict {
        Verdict::Same => format!("({by})"),
        Verdict::Grew | Verdict::Shrank => by,
    }
}

fn csv(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "figure", "unit", "a", "a_low", "a_high", "b", "b_low", "b_high", "percent", "verdict",
    ])?;
    for Change { figure, unit, a, b, percent, verdict } in &comparison.changes {
        let (a, b) = ((a.value, a.low, a.high), (b.value, b.low, b.high));
        csv.serialize((figure, unit, a, b, percent, verdict.name()))?;
    }
    csv.flush()
}
