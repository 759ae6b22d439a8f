//! Prints the changes between two result files, as tables, JSON or CSV.

use super::change::{Change, Comparison, Verdict};
use super::results::Figure;
use crate::output::{Results, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use tickless_lab::text::figure;

impl Results for Comparison {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Comparison { kind, a, b, changes, only_in_a, only_in_b, shows_all } = self;
        let is_shown = |change: &&Change| *shows_all || change.verdict != Verdict::Same;
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
            write_table(&table, out)?;
        }
        for (of, only) in [(a, only_in_a), (b, only_in_b)] {
            if !only.is_empty() {
                paragraph(out, "", &format!("only in {of}: {}", only.join(", ")))?;
            }
        }
        let count = |verdict| changes.iter().filter(|change| change.verdict == verdict).count();
        let (grew, shrank, same) =
            (count(Verdict::Grew), count(Verdict::Shrank), count(Verdict::Same));
        let text = format!(
            "{} of {a} (a) and {b} (b): {grew} figures grew, {shrank} shrank, {same} are within \
             both spreads",
            kind.name()
        );
        paragraph(out, "", &text)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "figure,unit,a,a_low,a_high,b,b_low,b_high,percent,verdict";
        let row = |change: &Change| {
            let Change { figure, unit, a, b, percent, verdict } = change.clone();
            let (a, b) = ((a.value, a.low, a.high), (b.value, b.low, b.high));
            (figure, unit, a, b, percent, verdict)
        };
        write_csv(header, self.changes.iter().map(row), out)
    }
}

/// Returns the range of a figure as text; a dash if it was measured only once.
pub(super) fn spread(of: &Figure) -> String {
    match of.low == of.high {
        true => "-".to_string(),
        false => format!("{}..{}", figure(of.low), figure(of.high)),
    }
}

/// Returns the change in percent as text, in brackets if both ranges overlap.
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
