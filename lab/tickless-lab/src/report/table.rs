//! Makes the tables of the page. The origin of each figure is shown by its column, by a letter and
//! by the background colour, so the page can also be read without colours.

use super::sheet;
use crate::studies::published::{Entry, Results, Table};
use crate::studies::{Cell, Exhibit, Role, claim, wanted};
use crate::text::grouped;
use maud::{Markup, html};

/// A table with more columns than this gets less space between them.
const WIDE: usize = 8;

/// Returns a published table with its figures. Returns nothing if the table has no figure.
pub fn of_published(Table { caption, groups, rows }: &Table, results: &Results<'_>) -> Markup {
    let has_groups = groups.iter().any(|(name, _)| !name.is_empty());
    let columns: usize = groups.iter().map(|(_, columns)| columns.len()).sum();
    let entries = |texts: &[&'static str]| -> Vec<Entry> {
        texts.iter().map(|text| results.entry(text)).collect()
    };
    let rows: Vec<_> = rows.iter().map(|(label, texts)| (label, entries(texts))).collect();
    let is_figure = |entry: &Entry| matches!(entry, Entry::Published(_) | Entry::Ours(_));
    if !rows.iter().flat_map(|(_, entries)| entries).any(is_figure) {
        return html! {};
    }
    html! {
        p.caption { (caption) }
        div.scroll {
            table.wide[columns > WIDE] aria-label=(caption) {
                thead {
                    @if has_groups {
                        tr {
                            td {}
                            @for (name, columns) in groups {
                                th.group colspan=(columns.len()) scope="colgroup" {
                                    (results.here(name))
                                }
                            }
                        }
                    }
                    tr {
                        td {}
                        @for (_, columns) in groups {
                            @for (at, column) in columns.iter().enumerate() {
                                th.first[at == 0] scope="col" { (column) }
                            }
                        }
                    }
                }
                tbody {
                    @for (label, entries) in &rows {
                        tr {
                            th scope="row" { (label) }
                            @for entry in entries { (of_entry(entry)) }
                        }
                    }
                }
            }
        }
    }
}

fn of_entry(entry: &Entry<'_>) -> Markup {
    match *entry {
        Entry::Nothing => html! { td.none { "\u{2013}" } },
        Entry::Word(word) => html! { td.word { (word) } },
        Entry::Published(what) => html! { td.published { (what) } },
        Entry::Ours(cell) => html! {
            td class=(cell.role.name()) title=(tooltip(cell)) {
                (number(cell.value)) (letter(cell.role)) (sign(cell)) (range(cell))
            }
        },
    }
}

const CELL_COLUMNS: [&str; 6] = ["figure", "value", "", "low \u{2013} high", "published", "wanted"];

pub fn of_cells<'a>(cells: impl Iterator<Item = &'a Cell>) -> Markup {
    let rows = html! {
        @for cell in cells {
            tr {
                th scope="row" { (cell.id) }
                td class=(cell.role.name()) { (number(cell.value)) (letter(cell.role)) }
                td.unit { (cell.unit) }
                td { (plain_range(cell)) }
                td.published { (cell.published.map_or_else(String::new, number)) }
                td { (wanted(cell)) (sign(cell)) }
            }
        }
    };
    sheet::table(Some("cells"), None, &CELL_COLUMNS, &rows)
}

pub fn of_exhibit(Exhibit { title, header, rows }: &Exhibit) -> Markup {
    let rows = html! {
        @for row in rows {
            tr {
                @for (at, value) in row.iter().enumerate() {
                    @if at == 0 { th scope="row" { (value) } } @else { td { (value) } }
                }
            }
        }
    };
    html! { p.caption { (title) } (sheet::table(None, Some(title), header, &rows)) }
}

pub fn letter(role: Role) -> Markup {
    html! { sup.role { (role.name()[..1].to_uppercase()) } }
}

fn sign(cell: &Cell) -> Markup {
    match cell.inside {
        Some(true) => html! { span.good title="inside its band" { "\u{2713}" } },
        Some(false) if cell.role == Role::Live => html! {
            span.bad title="outside of its band" { "\u{2717}" }
        },
        Some(false) => html! {
            span.missed title="the simulation misses what was published" { "\u{2260}" }
        },
        None => html! {},
    }
}

fn tooltip(cell: &Cell) -> String {
    let about = format!("{} ({}), {}", cell.id, cell.role.name(), cell.unit);
    match claim(cell) {
        None => about,
        Some([effect, published, null, wanted, score]) => format!(
            "{about}; effect {effect}, published {published}, null model {null}, wanted {wanted}, \
             score {score}"
        ),
    }
}

const CLAIM_COLUMNS: [&str; 7] =
    ["what the mechanism changes", "effect", "published", "null model", "wanted", "score", ""];

pub fn of_claims<'a>(cells: impl Iterator<Item = &'a Cell>) -> Markup {
    let claims: Vec<(&Cell, [String; 5])> =
        cells.filter_map(|cell| Some((cell, claim(cell)?))).collect();
    if claims.is_empty() {
        return html! {};
    }
    let rows = html! {
        @for (cell, words) in &claims {
            tr {
                th scope="row" { (cell.id) (letter(cell.role)) }
                @for word in words { td { (word.replace('-', "\u{2212}")) } }
                td { (sign(cell)) }
            }
        }
    };
    sheet::table(Some("cells"), Some("What the mechanism changes"), &CLAIM_COLUMNS, &rows)
}

fn range(cell: &Cell) -> Markup {
    match plain_range(cell) {
        range if range.is_empty() => html! {},
        range => html! { small { (range) } },
    }
}

fn plain_range(cell: &Cell) -> String {
    if cell.low == cell.high {
        return String::new();
    }
    format!("{}\u{2013}{}", number(cell.low), number(cell.high))
}

pub fn number(value: f64) -> String {
    grouped(value).replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Spread;
    use crate::studies::Band;

    /// Goal: an entry shows the origin of its figure by a letter as well as by a class, the range
    /// of the repetitions, and whether the figure is in its band (the expected range).
    #[test]
    fn an_entry_shows_its_origin() {
        let spread = Spread { median: 2_000.0, low: 1.0, high: 3_000.0, count: 3 };
        for (role, class, letter) in [
            (Role::Calibrated, "calibrated", "C"),
            (Role::Implied, "implied", "I"),
            (Role::Predicted, "predicted", "P"),
            (Role::Live, "live", "L"),
        ] {
            let cell = Cell::new("a.b", "us", role, spread);
            let inside = cell.clone().within(Band::at_most(2_000.0));
            let html = of_entry(&Entry::Ours(&inside)).into_string();
            assert!(html.starts_with(&format!("<td class=\"{class}\"")), "{html}");
            assert!(html.contains(&format!("2,000<sup class=\"role\">{letter}</sup>")), "{html}");
            assert!(html.contains("\u{2713}") && html.contains("1\u{2013}3,000"), "{html}");
            let outside = cell.within(Band::at_most(1.0));
            let mark = if role == Role::Live { "\u{2717}" } else { "\u{2260}" };
            let html = of_entry(&Entry::Ours(&outside)).into_string();
            assert!(html.contains(mark), "{role:?}");
        }
        let published = of_entry(&Entry::Published("about 90")).into_string();
        assert_eq!(published, "<td class=\"published\">about 90</td>");
    }
}
