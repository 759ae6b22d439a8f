//! Each file in `tests/transcripts` is a session in a terminal: the commands are run, and their
//! messages, results and exit status compared. `TRYCMD=overwrite` writes what they print now.

use crate::run::{PROGRAM, file, page, path, place};
use crate::support::{sample_text, text_without, twice};
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts");

/// Method: the commands run where the other tests run theirs. Damaged traces are too large to be
/// kept.
#[test]
fn transcripts_are_what_is_printed() {
    place("traces");
    place("lab/tickless-cli/tests/transcripts/files");
    file("twice.txt", twice(&sample_text("pipe-two-cpus")));
    file("no-writes.txt", text_without(&sample_text("pipe-one-cpu"), "write_msr"));
    let idle = sample_text("idle");
    file("idle-twice.txt", twice(&idle));
    file("idle-short.txt", idle.lines().take(30).collect::<Vec<_>>().join("\n") + "\n");
    std::env::set_current_dir(path("")).unwrap();
    let cases = trycmd::TestCases::new();
    cases.register_bin("tickless", Path::new(PROGRAM));
    cases.case(format!("{FOLDER}/*.trycmd")).run();
    assert!(!path("none.txt").exists(), "a refused recording left a file");
}

#[test]
fn the_book_shows_what_a_replay_prints() {
    let printed = std::fs::read_to_string(format!("{FOLDER}/replay.trycmd")).unwrap();
    let page = page("replay");
    let shown = page
        .lines()
        .filter(|line| line.starts_with(" slice timer o") || line.starts_with(" recorded |"));
    let shown: Vec<&str> = shown.collect();
    assert!(shown.len() == 3 && shown.iter().all(|row| printed.contains(row)), "{shown:#?}");
}
