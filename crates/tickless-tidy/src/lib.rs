//! Style as a test: the rules of this project that no compiler checks.
//!
//! `cargo tidy` walks every file that git knows and fails with one line per breach: where it
//! stands, which rule it breaks, and what to do instead.
//!
//! Ground rules:
//! - a rule is a function from files to [`Finding`]s, and has a unit test on a bad sample: a
//!   check that cannot fail is a defect;
//! - rules look at code with comments and strings blanked out ([`mask`]), so that a word in a
//!   message is not mistaken for a call;
//! - an exception stands in the open, with its reason: in a const beside the rule, or inline
//!   as `// tidy: allow(rule): reason` where the rule is in [`waiver::WAIVABLE`];
//! - an exception that is no longer needed is a breach too.
#![forbid(unsafe_code)]

pub mod banned;
pub mod comments;
pub mod mask;
pub mod names;
pub mod orphans;
pub mod shape;
pub mod source;
pub mod text;
pub mod tree;
pub mod unsafety;
pub mod waiver;

use source::SourceFile;
use std::fmt;

/// One breach of one rule, at one place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The file, from the repository's root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule's name, as a waiver would spell it.
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
    unsafety::safety_comments,
    unsafety::atomics,
    banned::banned_calls,
    shape::file_length,
    comments::module_comment,
    comments::doc_comment_start,
    names::prefixes,
    names::bool_parameters,
];

/// Everything that is wrong with these files, in the order of path and line.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().flat_map(check_file).collect();
    findings.extend(shape::function_length(files, shape::LONG_FUNCTIONS));
    findings.extend(orphans::unreachable_modules(files));
    findings.extend(orphans::uncalled_scripts(files));
    findings.sort();
    findings
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let findings = FILE_RULES.iter().flat_map(|rule| rule(file)).collect();
    waiver::settle(file, findings)
}
