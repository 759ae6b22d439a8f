//! The text of a study: the file `report.txt` in its folder, which describes the published report
//! and has its tables, and the notes and answers of the study's simulated and live runs.
//!
//! Lines that begin with `# ` divide it into the parts `published`, `tables`, `simulated`, `live`.
//!
//! - `published` has a line for each field of [`PublishedReport`](super::published). A pair has
//!   ` | ` in its middle.
//! - `## ` begins a table with its caption. Its first line has the headings of the columns; a
//!   heading with a colon begins a group of columns, whose name comes first. Each further line is a
//!   row: its label, and an entry for each column. An entry is a published figure; `sim` or `live`
//!   and the name of one of our figures, where `*` stands for this machine's number of CPUs; `word`
//!   and a word; or empty.
//! - `- ` begins a note, and `## ` a question, with its answer below. `{NAME}` is the figure of
//!   that name, or a text that the study provides; `{atomic add}` is the ns of an atomic add here.

use crate::studies::request::World;

/// Returns the notes in a study's text, and the questions with their answers.
pub fn explanations(text: &str, world: World) -> (Vec<String>, Vec<(&str, String)>) {
    let joined = |lines: &str| lines.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = part(text, world.label());
    let notes = part.split("\n## ").next().unwrap_or_default().split("\n- ").skip(1);
    let answers = parts(part, "\n## ").map(|(question, answer)| (question, joined(answer)));
    (notes.map(joined).collect(), answers.collect())
}

pub fn part<'t>(text: &'t str, name: &str) -> &'t str {
    let mut all = text.split("\n# ");
    all.find(|part| part.lines().next() == Some(name)).unwrap_or_default()
}

/// Splits a text at each `mark`. Returns the rest of each line with a mark, and the lines below it.
pub fn parts<'t>(text: &'t str, mark: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    text.split(mark).skip(1).map(|part| part.split_once('\n').unwrap_or((part, "")))
}
