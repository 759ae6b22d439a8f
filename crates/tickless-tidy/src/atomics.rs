//! In the `no_std` crate only one file may name an atomic type. Other modules use the platform's
//! words, whose accesses the model checkers can watch.
//!
//! The lint `unsafe_code` restricts unsafe code to the modules that allow it. The workspaces in
//! `SAFE` have no unsafe code of their own. They are checked here instead, because the macros of
//! their frameworks expand to unsafe code.

use crate::Finding;
use crate::mask::{find_words, is_word};
use crate::source::SourceFile;

/// The sources that must not name an atomic type, and the only file among them that may.
const WATCHED: &str = "crates/tickless-core/src/";
const ADDRESS: &str = "crates/tickless-core/src/word.rs";

const ATOMICS: &[&str] =
    &["sync::atomic", "atomic::", "AtomicU", "AtomicI", "AtomicBool", "AtomicPtr"];

/// Workspaces without unsafe code.
const SAFE: &[&str] = &["fuzz/", "python/"];

/// Returns the unsafe code in the workspaces that have none.
pub fn unsafe_code(file: &SourceFile) -> Vec<Finding> {
    if !SAFE.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let breaches = find_words(&file.code, "unsafe").into_iter().map(|at| {
        let instead = "move it into a crate of the library";
        file.finding(file.line_of(at), "unsafe-code", "`unsafe` outside the library", instead)
    });
    breaches.collect()
}

/// Returns the lines of the watched sources that name an atomic type, outside the file that may.
pub fn atomics(file: &SourceFile) -> Vec<Finding> {
    if !file.path.starts_with(WATCHED) || file.path == ADDRESS {
        return Vec::new();
    }
    let lines = (1..).zip(file.code_without_tests().lines());
    let hits = lines.filter(|(_, code)| ATOMICS.iter().any(|atomic| starts_word(code, atomic)));
    let breaches = hits.map(|(number, _)| {
        let instead = "use the Platform's Word, which the model checkers can watch";
        file.finding(number, "atomics", "an atomic outside word.rs", instead)
    });
    breaches.collect()
}

/// Returns whether a word or path in `code` starts with `needle`.
fn starts_word(code: &str, needle: &str) -> bool {
    let bytes = code.as_bytes();
    code.match_indices(needle).any(|(i, _)| i == 0 || !is_word(bytes[i - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found() {
        let text = "// unsafe\nlet a = \"unsafe\";\nunsafe { b() }\n";
        let lines = |path: &str| -> Vec<usize> {
            unsafe_code(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("python/src/lib.rs"), [3]);
        assert!(lines("crates/tickless/src/lib.rs").is_empty());
    }

    #[test]
    fn atomics_outside_their_address_are_found() {
        let text = "use core::sync::atomic::Ordering;\nlet a: AtomicU64;\nlet non_atomic::b;\n\
                    #[cfg(test)]\nmod tests { use core::sync::atomic::AtomicBool; }";
        let lines = |path: &str| -> Vec<usize> {
            atomics(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("crates/tickless-core/src/bandwidth/permits.rs"), [1, 2]);
        for path in [ADDRESS, "crates/tickless/src/timers.rs", "crates/tickless-core/tests/a.rs"] {
            assert!(lines(path).is_empty(), "{path}");
        }
    }
}
