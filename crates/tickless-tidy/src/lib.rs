//! Style as a test: the rules of this project that neither the compiler, clippy nor a line of
//! `ci/tidy.sh` checks.
//!
//! A rule is a function from files to a list of breaches, each as `path:line: what; instead`. It
//! has a unit test with a text that breaks the rule, because a check that cannot fail is useless.
//! Rules for code read it with comments and strings blanked out.

// The names of fields and functions say what they are.
#![allow(missing_docs)]

pub mod architecture;
pub mod floors;
pub mod plain;
pub mod source;

use source::SourceFile;

/// Returns all breaches in these files.
pub fn check(files: &[SourceFile]) -> Vec<String> {
    let mut breaches = floors::arrows(files, floors::CRATES);
    breaches.extend(architecture::missing_steps(files));
    breaches.extend(plain::phrases(files, plain::LIMIT));
    breaches
}
