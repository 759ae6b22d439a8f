//! Style as a test: the rules of this project that neither the compiler nor clippy checks.
//!
//! `cargo tidy` walks every file that git knows and fails with one line per breach: where it
//! stands, which rule it breaks, and what to do instead. Whatever clippy can check is in the
//! lint table of the workspace's `Cargo.toml`, and in `clippy.toml`.
//!
//! Ground rules:
//! - a rule is a function from files to [`Finding`]s, and has a unit test on a bad sample: a
//!   check that cannot fail is a defect;
//! - rules look at code with comments and strings blanked out ([`mask`]);
//! - exceptions stand in a const beside the rule, with their reasons.
#![forbid(unsafe_code)]

pub mod doctests;
pub mod floors;
pub mod mask;
pub mod orphans;
pub mod source;
pub mod text;
pub mod tree;
pub mod unsafety;

use source::SourceFile;
use std::fmt;

/// One breach of one rule, at one place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The file, from the repository's root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// What is wrong here.
    pub what: String,
    /// What to do instead.
    pub instead: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { path, line, rule, what, instead } = self;
        write!(f, "{path}:{line}: {rule}: {what}; {instead}")
    }
}

/// The rules that look at one file at a time.
const FILE_RULES: &[fn(&SourceFile) -> Vec<Finding>] = &[
    text::line_length,
    text::machine_paths,
    text::unfinished_words,
    unsafety::unsafe_addresses,
    unsafety::atomics,
];

/// Everything that is wrong with these files, in the order of path and line.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let by_file = |file| FILE_RULES.iter().flat_map(move |rule| rule(file));
    let mut findings: Vec<Finding> = files.iter().flat_map(by_file).collect();
    findings.extend(orphans::unreachable_modules(files));
    findings.extend(orphans::uncalled_scripts(files));
    findings.extend(unsafety::stale_addresses(files));
    findings.extend(floors::arrows(files, floors::CRATES));
    findings.extend(doctests::unrun_examples(files));
    findings.sort();
    findings
}
