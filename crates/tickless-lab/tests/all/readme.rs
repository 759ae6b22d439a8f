//! The table and the picture of the five mechanisms in the book are those that the program makes.
//!
//! `TICKLESS_REGENERATE=1 cargo test -p tickless-lab --test all readme::` writes both.

use std::fs;
use std::path::{Path, PathBuf};
use tickless_lab::report::readme;

const PAGE: &str = "docs/book/src/studies.md";

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Goal: the figures of the page stay current. Simulated ones are equal on all machines.
#[test]
fn the_page_has_the_figures_of_the_program() {
    let studies = readme::studies().unwrap();
    let old = fs::read_to_string(at(PAGE)).unwrap();
    let table = readme::table(&studies);
    let new = readme::with_table(&old, &table).expect("the page has no marks");
    let picture = readme::picture(&studies).unwrap();
    if std::env::var_os("TICKLESS_REGENERATE").is_some() {
        fs::write(at(PAGE), &new).unwrap();
        fs::write(at("docs/book/src/five.svg"), &picture).unwrap();
        return;
    }
    let advice = "TICKLESS_REGENERATE=1 cargo test -p tickless-lab --test all readme::";
    assert!(old == new, "{PAGE}: run {advice}; what it should have:\n{table}");
    let drawn = fs::read_to_string(at("docs/book/src/five.svg")).unwrap_or_default();
    assert!(drawn == picture, "docs/book/src/five.svg: run {advice}");
}
