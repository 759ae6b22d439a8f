//! Style as a test: the rules of this project that neither the compiler nor clippy checks.
//!
//! `cargo tidy` reads every file that git lists and fails with one line per breach: the place, the
//! rule, and what to do instead. Rules that clippy can check are in the lint table of the
//! workspace's `Cargo.toml`, and in `clippy.toml`.
//!
//! Ground rules:
//! - a rule is a function from files to [`Finding`]s, and has a unit test with a text that breaks
//!   the rule, because a check that cannot fail is useless;
//! - rules for code read it with comments and strings blanked out ([`mask`]);
//! - the exceptions of a rule are a const beside it, with their reasons.

pub mod atomics;
pub mod doctests;
pub mod floors;
pub mod followed;
pub mod mask;
pub mod orphans;
pub mod plain;
pub mod source;
pub mod text;
pub mod tree;

use source::SourceFile;
use std::fmt;

/// A breach of a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The file, from the repository's root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// The breach.
    pub what: String,
    /// The correction.
    pub instead: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { path, line, rule, what, instead } = self;
        write!(f, "{path}:{line}: {rule}: {what}; {instead}")
    }
}

/// The rules for single files.
const FILE_RULES: &[fn(&SourceFile) -> Vec<Finding>] = &[
    text::line_length,
    text::machine_paths,
    text::unfinished_words,
    atomics::atomics,
    atomics::unsafe_code,
];

/// Returns all breaches in these files, in the order of path and line.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let by_file = |file| FILE_RULES.iter().flat_map(move |rule| rule(file));
    let mut findings: Vec<Finding> = files.iter().flat_map(by_file).collect();
    findings.extend(orphans::unreachable_modules(files));
    findings.extend(orphans::uncalled_scripts(files));
    findings.extend(floors::arrows(files, floors::CRATES));
    findings.extend(doctests::unrun_examples(files));
    findings.extend(followed::missing_steps(files));
    findings.extend(plain::phrases(files, plain::LIMIT));
    findings.sort();
    findings
}
