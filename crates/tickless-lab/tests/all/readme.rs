//! The README's table and picture of the five mechanisms are what the program says they are.
//!
//! `TICKLESS_REGENERATE=1 cargo test -p tickless-lab --test all readme::` writes both.

use std::fs;
use std::path::{Path, PathBuf};
use tickless_lab::report::readme;

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Goal: figures of the README cannot grow old: simulated ones are the same everywhere.
#[test]
fn the_readme_has_the_figures_of_the_program() {
    let studies = readme::studies().unwrap();
    let old = fs::read_to_string(at("README.md")).unwrap();
    let table = readme::table(&studies);
    let new = readme::with_table(&old, &table).expect("no marks in README.md");
    let picture = readme::picture(&studies).unwrap();
    if std::env::var_os("TICKLESS_REGENERATE").is_some() {
        fs::write(at("README.md"), &new).unwrap();
        fs::write(at("docs/five.svg"), &picture).unwrap();
        return;
    }
    let advice = "TICKLESS_REGENERATE=1 cargo test -p tickless-lab --test all readme::";
    assert!(old == new, "README.md: run {advice}; what it should have:\n{table}");
    let drawn = fs::read_to_string(at("docs/five.svg")).unwrap_or_default();
    assert!(drawn == picture, "docs/five.svg: run {advice}");
}
