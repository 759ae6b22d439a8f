//! The table and the picture of the five mechanisms in the book are those that the program makes.
//! They contain only simulated figures, which are equal on all machines.
//!
//! `TICKLESS_REGENERATE=1 cargo test -p tickless-lab --test all readme::` writes both.

use std::fs;
use std::path::{Path, PathBuf};
use tickless_lab::effort::Effort;
use tickless_lab::progress::Hidden;
use tickless_lab::report::draw::{beside, draw, groups};
use tickless_lab::studies::{Cell, Request, Role, STUDIES, Study, StudyResult, World};
use tickless_lab::text::grouped;

const PAGE: &str = "docs/book/src/studies.md";
const PICTURE: &str = "docs/book/src/five.svg";
/// The comments that mark the table's place in the page.
const MARKS: [&str; 2] = ["<!-- five: begin -->", "<!-- five: end -->"];

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Goal: the figures of the page stay current.
#[test]
fn the_page_has_the_figures_of_the_program() {
    let request = Request::new(World::Sim, Effort::Normal, 0);
    let studies: Vec<StudyResult> =
        mechanisms().map(|study| study.run(&request, &Hidden).unwrap()).collect();
    let old = fs::read_to_string(at(PAGE)).unwrap();
    let table = table(&studies);
    let [begin, end] = MARKS;
    let (before, rest) = old.split_once(begin).expect("the page has a mark");
    let (_, after) = rest.split_once(end).expect("the page has a second mark");
    let new = format!("{before}{begin}\n\n{table}\n{end}{after}");
    let picture = picture(&studies);
    if std::env::var_os("TICKLESS_REGENERATE").is_some() {
        fs::write(at(PAGE), &new).unwrap();
        fs::write(at(PICTURE), &picture).unwrap();
        return;
    }
    let advice = "TICKLESS_REGENERATE=1 cargo test -p tickless-lab --test all readme::";
    assert!(old == new, "{PAGE}: run {advice}; what it should have:\n{table}");
    let drawn = fs::read_to_string(at(PICTURE)).unwrap_or_default();
    assert!(drawn == picture, "{PICTURE}: run {advice}");
}

/// The studies of the five mechanisms, for each of which the doctor has a check.
fn mechanisms() -> impl Iterator<Item = &'static Study> {
    STUDIES.iter().filter(|study| !study.checks.is_empty())
}

fn table(studies: &[StudyResult]) -> String {
    let mut text = String::from(
        "| mechanism | figure | published | simulated | `tickless` |\n|---|---|--:|--:|---|\n",
    );
    for (of, study) in mechanisms().zip(studies) {
        let (name, report) = (of.name, of.published());
        let published = report.figures.map_or("-".to_string(), |[before, after]| {
            format!("{} to {}", grouped(before), grouped(after))
        });
        let [before, after] = report.simulated.map(|id| study.cell(id).map_or("-".into(), shown));
        let (mechanism, unit) = (report.mechanism, report.unit);
        text += &format!(
            "| {mechanism} | {unit} | {published} | {before} to {after} | `study {name}` |\n"
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

fn picture(studies: &[StudyResult]) -> String {
    const SHOWN: [(&str, &str); 2] = [("cancel", "cost"), ("clock", "read_percent")];
    let pictures = SHOWN.map(|(name, id)| {
        let study = studies.iter().find(|study| study.study == name);
        let groups = groups(study, None);
        let group = groups.iter().find(|group| group[0].1.id == id).unwrap();
        (group[0].1.title.clone(), draw(group))
    });
    beside("Two of the five mechanisms, before and after", &pictures)
}
