//! This repository against its own rules.

#![allow(clippy::expect_used)]

use tickless_tidy::check;
use tickless_tidy::source::SourceFile;

#[test]
fn repository_is_tidy() {
    let files = SourceFile::repository().expect("the repository can be read");
    // Rules for no files find nothing.
    for path in ["ARCHITECTURE.md", "crates/tickless-core/src/lib.rs", "crates/tickless/src/lib.rs"]
    {
        assert!(files.iter().any(|file| file.path == path), "{path} was not listed");
    }
    let breaches = check(&files);
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}
