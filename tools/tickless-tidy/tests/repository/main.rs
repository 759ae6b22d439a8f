//! Style as a test: this repository against the rules of this project that neither the compiler,
//! clippy nor a line of `ci/tidy.sh` checks.
//!
//! A rule is a function from files to a list of breaches, each as `path:line: what; instead`. It
//! has a unit test with a text that breaks the rule, because a check that cannot fail is useless.
//! Rules for code read it without comments and literals.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod architecture;
mod floors;
mod source;

use source::SourceFile;

#[test]
fn repository_is_tidy() {
    let files = SourceFile::repository().expect("the repository can be read");
    // Rules for no files find nothing.
    for path in
        ["timers/ARCHITECTURE.md", "timers/tickless-core/src/lib.rs", "timers/tickless/src/lib.rs"]
    {
        assert!(files.iter().any(|file| file.path == path), "{path} was not listed");
    }
    let crates = floors::listed();
    let mut breaches = floors::arrows(&files, &crates);
    breaches.extend(floors::without_floors(&files, &crates));
    breaches.extend(architecture::missing_steps(&files));
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}
