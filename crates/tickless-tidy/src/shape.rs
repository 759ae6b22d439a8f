//! How long files and functions may be.
//!
//! Function length is a ratchet: what is over the limit stands in [`LONG_FUNCTIONS`] with its
//! length, may only shrink, and must leave the list when it fits.

use crate::Finding;
use crate::source::SourceFile;
use std::cmp::Ordering;

/// The most lines a file may have.
pub const FILE_LINES_MAX: usize = 600;

/// The most lines a function may have, from its `fn` to its closing brace.
pub const FUNCTION_LINES_MAX: usize = 80;

/// A function over the limit: its file, its name, its length.
pub type LongFunction = (&'static str, &'static str, usize);

/// The functions that are longer than [`FUNCTION_LINES_MAX`] for now.
pub const LONG_FUNCTIONS: &[LongFunction] = &[];

const RULE: &str = "function-length";

/// No Rust file has more than [`FILE_LINES_MAX`] lines.
pub fn file_length(file: &SourceFile) -> Vec<Finding> {
    let length = file.lines.len();
    if !file.is_rust() || length <= FILE_LINES_MAX {
        return Vec::new();
    }
    let what = format!("{length} lines, at most {FILE_LINES_MAX} fit");
    let instead = "split it along its mechanisms, so that each name tells what is inside";
    vec![file.finding(FILE_LINES_MAX + 1, "file-length", what, instead)]
}

/// No function has more than [`FUNCTION_LINES_MAX`] lines, but for the listed ones, which have
/// exactly their listed length.
pub fn function_length(files: &[SourceFile], listed: &[LongFunction]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = Vec::new();
    let all = |file| SourceFile::functions(file).into_iter().map(move |f| (file, f));
    let functions = files.iter().flat_map(all);
    for (file, function) in functions {
        let length = function.last_line - function.line + 1;
        if length <= FUNCTION_LINES_MAX {
            continue;
        }
        let entry = listed.iter().find(|l| l.0 == file.path && l.1 == function.name);
        seen.extend(entry);
        let most = entry.map_or(FUNCTION_LINES_MAX, |entry| entry.2);
        let instead = match length.cmp(&most) {
            Ordering::Equal => continue,
            Ordering::Greater => "take a step out of it into a function that says what it does",
            Ordering::Less => "it shrank: lower its entry in LONG_FUNCTIONS",
        };
        let what = format!("`{}` has {length} lines, its limit is {most}", function.name);
        findings.push(file.finding(function.line, RULE, what, instead));
    }
    findings.extend(listed.iter().filter(|entry| !seen.contains(entry)).map(stale));
    findings
}

fn stale((path, name, _): &LongFunction) -> Finding {
    Finding {
        path: path.to_string(),
        line: 1,
        rule: RULE,
        what: format!("`{name}` is not over the limit any more"),
        instead: "drop its entry from LONG_FUNCTIONS".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> [SourceFile; 1] {
        let body = "    b();\n".repeat(lines - 2);
        [SourceFile::new("a.rs", &format!("\nfn a() {{\n{body}}}\n"))]
    }

    #[test]
    fn long_files_are_found() {
        let file = |path, lines| SourceFile::new(path, &"\n".repeat(lines));
        assert_eq!(file_length(&file("a.rs", FILE_LINES_MAX + 1)).len(), 1);
        assert_eq!(file_length(&file("a.rs", FILE_LINES_MAX)), []);
        assert_eq!(file_length(&file("a.md", FILE_LINES_MAX + 1)), []);
    }

    #[test]
    fn long_functions_are_found() {
        assert_eq!(function_length(&function(FUNCTION_LINES_MAX), &[]), []);
        let findings = function_length(&function(FUNCTION_LINES_MAX + 1), &[]);
        assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn the_ratchet_only_turns_one_way() {
        let instead = |lines, listed| -> Vec<String> {
            let findings = function_length(&function(lines), &[("a.rs", "a", listed)]);
            findings.into_iter().map(|finding| finding.instead).collect()
        };
        assert_eq!(instead(90, 90), [] as [String; 0]);
        assert!(instead(91, 90)[0].starts_with("take a step out"));
        assert!(instead(89, 90)[0].starts_with("it shrank"));
        assert!(instead(80, 90)[0].starts_with("drop its entry"));
    }
}
