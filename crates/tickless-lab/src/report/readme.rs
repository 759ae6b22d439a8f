//! Makes the table and the picture of the five mechanisms in the book. They contain only simulated
//! figures, which are equal on all machines, so a test can compare them (`tests/all/readme.rs`).

use super::draw::{canvas, draw, groups};
use crate::LabError;
use crate::progress::Hidden;
use crate::studies::{Cell, Effort, Request, Role, STUDIES, Study, StudyResult, World};
use crate::text::grouped;
use std::fmt::Write;
use std::io;

/// The HTML comments that mark the table's place in the file.
pub const MARKS: [&str; 2] = ["<!-- five: begin -->", "<!-- five: end -->"];

pub fn studies() -> Result<Vec<StudyResult>, LabError> {
    let request = Request::new(World::Sim, Effort::Normal, 0);
    mechanisms().map(|study| study.run(&request, &Hidden)).collect()
}

/// The studies of the five mechanisms, for each of which the doctor has a check.
fn mechanisms() -> impl Iterator<Item = &'static Study> {
    STUDIES.iter().filter(|study| !study.checks.is_empty())
}

pub fn table(studies: &[StudyResult]) -> String {
    let mut text = String::from(
        "| mechanism | figure | published | simulated | `tickless` |\n|---|---|--:|--:|---|\n",
    );
    for (Study { name, published, .. }, study) in mechanisms().zip(studies) {
        let (mechanism, headline) = (published.mechanism, &published.headline);
        let published = headline.published.map_or("-".to_string(), |[before, after]| {
            format!("{} to {}", grouped(before), grouped(after))
        });
        let [before, after] = headline.simulated.map(|id| study.cell(id).map_or("-".into(), shown));
        let unit = headline.unit;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {mechanism} | {unit} | {published} | {before} to {after} | `study {name}` |"
        );
    }
    text
}

/// Formats a figure. If the figure proves nothing, because a parameter was fitted to it or a
/// formula gives it, a mark is added.
fn shown(cell: &Cell) -> String {
    let mark = match cell.role {
        Role::Calibrated => "*",
        Role::Implied => "\u{2020}",
        Role::Predicted | Role::Live => "",
    };
    format!("{}{mark}", grouped(cell.value))
}

/// Returns the text of a file in which `table` replaces the table that was there. `None` if the
/// file lacks the comments that mark the table's place.
pub fn with_table(readme: &str, table: &str) -> Option<String> {
    let [begin, end] = MARKS;
    let (before, rest) = readme.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n\n{table}\n{end}{after}"))
}

pub fn picture(studies: &[StudyResult]) -> io::Result<String> {
    const SHOWN: [(&str, &str); 2] = [("cancel", "cost"), ("clock", "read_percent")];
    let mut pictures = Vec::new();
    for (name, id) in SHOWN {
        let study = studies.iter().find(|study| study.study == name);
        let group = groups(study, None).into_iter().find(|group| group[0].1.id == id);
        let Some(group) = group else { continue };
        pictures.push((group[0].1.title.clone(), draw(&group)?));
    }
    Ok(beside("Two of the five mechanisms, before and after", &pictures))
}

/// Draws all plots of a study, beside each other.
pub fn plots(study: &StudyResult) -> io::Result<String> {
    let plots = groups(Some(study), None);
    let drawn = plots.iter().map(|group| Ok((group[0].1.title.clone(), draw(group)?)));
    Ok(beside(study.study, &drawn.collect::<io::Result<Vec<_>>>()?))
}

fn beside(label: &str, pictures: &[(String, String)]) -> String {
    const WIDTH: usize = 580;
    const HEIGHT: usize = 340;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {HEIGHT}\" role=\"img\" \
         aria-label=\"{label}\">\n<style>\n{}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n",
        WIDTH * pictures.len(),
        canvas::STYLE,
    );
    for (at, (title, picture)) in pictures.iter().enumerate() {
        let left = WIDTH * at + 10;
        let sized = picture.replacen(
            "<svg ",
            &format!("<svg x=\"{left}\" y=\"44\" width=\"560\" height=\"290\" "),
            1,
        );
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"28\" font-family=\"sans-serif\" font-size=\"17\" \
             font-weight=\"bold\" fill=\"var(--ink)\">{title}</text>\n{sized}",
            left + 12
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stands_between_its_marks() {
        let [begin, end] = MARKS;
        let readme = format!("a\n{begin}\nold\n{end}\nb\n");
        let new = with_table(&readme, "| new |\n").unwrap();
        assert_eq!(new, format!("a\n{begin}\n\n| new |\n\n{end}\nb\n"));
        assert_eq!(with_table(&new, "| new |\n").unwrap(), new, "once more changes nothing");
        assert_eq!(with_table("no marks", "a"), None);
    }
}
