//! Checks the table of ARCHITECTURE.md that follows one timer through the code: every file and
//! function that it names exists.

use crate::Finding;
use crate::mask::find_words;
use crate::source::SourceFile;

const DOCUMENT: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Follow one timer";

/// Finds rows of the table with a file that does not exist, or a function that the file does not
/// define.
pub fn missing_steps(files: &[SourceFile]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else {
        return Vec::new();
    };
    let start = document.lines.iter().position(|line| line == SECTION);
    let Some(start) = start else {
        return vec![finding(document, 1, format!("the section `{SECTION}` is missing"))];
    };
    let section = document.lines.iter().enumerate().skip(start + 1);
    let rows = section.take_while(|(_, line)| !line.starts_with("## ")).filter_map(|(at, line)| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [_, path, functions] = cells[..] else { return None };
        path.trim().starts_with('`').then(|| (at + 1, quoted(path), quoted(functions)))
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return vec![finding(document, start + 1, "the table has no rows".to_string())];
    }
    let mut findings = Vec::new();
    for (line, paths, functions) in rows {
        for path in paths {
            let Some(file) = files.iter().find(|file| file.path == path) else {
                findings.push(finding(document, line, format!("`{path}` does not exist")));
                continue;
            };
            for function in &functions {
                if !defines(file, function) {
                    let what = format!("`{path}` has no function `{function}`");
                    findings.push(finding(document, line, what));
                }
            }
        }
    }
    findings
}

/// Returns the words in backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn defines(file: &SourceFile, function: &str) -> bool {
    let code = file.code_without_tests();
    find_words(code, function).into_iter().any(|at| code[..at].trim_end().ends_with("fn"))
}

fn finding(document: &SourceFile, line: usize, what: String) -> Finding {
    document.finding(
        line,
        "follow-one-timer",
        what,
        "follow the timer again, and name what is there",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_do_not_exist_are_found() {
        let found = |rows: &str| {
            let text =
                format!("# A\n{SECTION}\n\n| step | file | functions |\n|---|---|---|\n{rows}");
            let files = [
                SourceFile::new(DOCUMENT, &text),
                SourceFile::new("a.rs", "pub fn start<T>() {}\nfn arm() {} // fn not_code"),
            ];
            missing_steps(&files).into_iter().map(|at| at.what).collect::<Vec<_>>()
        };
        assert_eq!(found("| Arm | `a.rs` | `start`, `arm` |\n"), [] as [String; 0]);
        assert_eq!(found("| Arm | `a.rs` | `starts` |\n"), ["`a.rs` has no function `starts`"]);
        assert_eq!(found("| Arm | `a.rs` | `not_code` |\n").len(), 1);
        assert_eq!(found("| Arm | `b.rs` | `start` |\n"), ["`b.rs` does not exist"]);
        assert_eq!(found("no table\n"), ["the table has no rows"]);
        let without = [SourceFile::new(DOCUMENT, "# A\n")];
        assert_eq!(missing_steps(&without).len(), 1);
    }
}
