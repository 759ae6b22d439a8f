//! Writes the comparison of two reports as an HTML page, with the styles of `tickless report`.

use super::change::{Change, Comparison, Verdict};
use super::{moved, spread};
use maud::{Markup, html};
use tickless_lab::report::sheet;
use tickless_lab::text::figure;

pub(super) fn page(comparison: &Comparison) -> String {
    let Comparison { a, b, changes, only_in_a, only_in_b, .. } = comparison;
    let of = |verdict| changes.iter().filter(|it| it.verdict == verdict).collect::<Vec<_>>();
    let [grew, shrank, same, unknown] =
        [Verdict::Grew, Verdict::Shrank, Verdict::Same, Verdict::Unknown].map(of);
    let body = html! {
        header {
            h1 { "Two reports" }
            ul.facts { li { "a: " code { (a) } } li { "b: " code { (b) } } }
            p.lead {
                (grew.len()) " figures grew from a to b, " (shrank.len()) " shrank, "
                (same.len()) " did not move. " (unknown.len()) " differ, but were measured too few \
                 times to tell."
            }
            p {
                "Each figure is a median, with its spread: from the least to the greatest of its \
                 repetitions. It moved if its two values are farther apart than both spreads are \
                 wide together, and each was measured at least four times or simulated. A figure's \
                 name is its study, whether it was simulated (" code { "sim" } ") or measured ("
                code { "live" } "), and what it is of. A change for the worse is "
                span.bad { "red" } ", one for the better " span.good { "green" } "."
            }
        }
        main {
            section { h2 { "Grew" } (table(&grew)) }
            section { h2 { "Shrank" } (table(&shrank)) }
            section {
                h2 { "Did not move" }
                details { summary { (same.len()) " figures, their changes in brackets" }
                    (table(&same))
                }
            }
            section {
                h2 { "Measured too few times" }
                details { summary { (unknown.len()) " figures" } (table(&unknown)) }
            }
            (only("a", only_in_a))
            (only("b", only_in_b))
        }
    };
    sheet::document(&format!("Tickless: {a} and {b}"), &body)
}

fn table(changes: &[&Change]) -> Markup {
    html! {
        @if changes.is_empty() { p { "None." } } @else {
            div.scroll { table.cells {
                thead { tr {
                    th scope="col" { "change" } th scope="col" { "unit" }
                    th scope="col" { "a" } th scope="col" { "spread of a" }
                    th scope="col" { "b" } th scope="col" { "spread of b" }
                } }
                tbody { @for change in changes { (row(change)) } }
            } }
        }
    }
}

fn row(change: &Change) -> Markup {
    html! {
        // The name has a row of its own, so that the change is visible on a telephone.
        tr { th colspan="6" scope="rowgroup" { (change.figure) } }
        tr {
            td { @match change.is_worse() {
                Some(true) => span.bad { (moved(change)) },
                Some(false) => span.good { (moved(change)) },
                None => (moved(change)),
            } }
            td.unit { (change.unit) }
            td { (figure(change.a.value)) }
            td { (spread(&change.a)) }
            td { (figure(change.b.value)) }
            td { (spread(&change.b)) }
        }
    }
}

fn only(of: &str, names: &[String]) -> Markup {
    html! {
        @if !names.is_empty() {
            section {
                h2 { "Only in " (of) }
                ul.notes { @for it in names { li { code { (it) } } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::compare;
    use super::super::results::Results;
    use super::*;
    use serde_json::json;

    /// Changes for the worse are marked, upwards or downwards. Texts from the files are escaped,
    /// and the page loads nothing.
    #[test]
    fn the_page_groups_changes_and_marks_the_worse() {
        let report = |cells: &[(&str, &str, f64)]| {
            let cells = cells.iter().map(|(id, unit, value)| {
                json!({"id": id, "unit": unit, "value": value, "low": value, "high": value})
            });
            let sim = json!({"result": {"cells": cells.collect::<Vec<_>>()}});
            let study = json!({"study": "clock", "sim": sim, "live": {}});
            Results::of(&[json!({"studies": [study]})]).unwrap()
        };
        let jobs = |value| ("jobs", "jobs/min", value);
        let a = report(&[jobs(100.0), ("read", "ns", 10.0), ("same", "ns", 7.0)]);
        let b = report(&[jobs(80.0), ("read", "ns", 8.0), ("same", "ns", 7.0), ("new", "ns", 1.0)]);
        let all = page(&compare(["a<i>.json", "b.json"], &a, &b));
        let (_, rest) = all.split_once("<h2>Grew</h2>").unwrap();
        let (grew, rest) = rest.split_once("<h2>Shrank</h2>").unwrap();
        let (shrank, same) = rest.split_once("<h2>Did not move</h2>").unwrap();
        assert!(grew.contains("None."), "{grew}");
        assert!(shrank.contains(r#"<span class="bad">-20.0 %</span>"#), "{shrank}");
        assert!(shrank.contains(r#"<span class="good">-20.0 %</span>"#), "{shrank}");
        assert!(same.contains("clock.sim.same") && same.contains("1 figures"), "{same}");
        assert!(all.contains("Only in b") && all.contains("clock.sim.new"), "{all}");
        assert!(all.contains("a&lt;i&gt;.json") && !all.contains("<i>"));
        assert!(all.contains("default-src 'none'") && !all.contains("<script"));
    }
}
