//! This repository against its own rules.

// Tests panic and print.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::fmt::Write;
use tickless_tidy::{check, tree};

/// Goal: no file of the repository breaks a rule.
#[test]
fn repository_is_tidy() {
    let files = tree::repository().expect("the repository can be read");
    let findings = check(&files);
    let mut report = String::new();
    for finding in &findings {
        writeln!(report, "{finding}").expect("a String takes every write");
    }
    assert!(findings.is_empty(), "{} breaches:\n{report}", findings.len());
}

/// Goal: the rules read the whole repository, because rules for no files find nothing.
#[test]
fn listing_covers_the_repository() {
    let files = tree::repository().expect("the repository can be read");
    for path in
        ["Cargo.toml", ".ci/run", "crates/tickless-tidy/src/lib.rs", "crates/tickless/src/lib.rs"]
    {
        assert!(files.iter().any(|file| file.path == path), "{path} was not listed");
    }
}

/// Goal: a breach in any Rust file is reported.
/// Method: break a rule at the end of each file in turn, in memory.
#[test]
fn breach_in_any_file_is_reported() {
    let files = tree::repository().expect("the repository can be read");
    for file in files.iter().filter(|file| file.is_rust()) {
        let text = file.lines.join("\n") + concat!("\n// TO", "DO\n");
        let broken = tickless_tidy::source::SourceFile::new(&file.path, &text);
        let findings = check(&[broken]);
        assert!(findings.iter().any(|f| f.rule == "unfinished"), "nothing found in {}", file.path);
    }
}
