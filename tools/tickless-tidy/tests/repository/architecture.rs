//! Checks the table of timers/ARCHITECTURE.md that follows one timer through the code: every file
//! and function that it names exists.

use crate::source::{SourceFile, find_words};

const DOCUMENT: &str = "timers/ARCHITECTURE.md";
const SECTION: &str = "## Follow one timer";

/// Finds rows of the table with a file that does not exist, or a function that it does not define.
pub fn missing_steps(files: &[SourceFile]) -> Vec<String> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else {
        return Vec::new();
    };
    let breach = |line, what: String| {
        document.breach(line, &what, "follow the timer again, and name what is there")
    };
    let lines = (1..).zip(&document.lines).skip_while(|(_, line)| *line != SECTION);
    let section = lines.skip(1).take_while(|(_, line)| !line.starts_with("## "));
    let rows: Vec<_> = section.filter(|(_, line)| line.starts_with("| ")).collect();
    // The first row is the table's header.
    if rows.len() < 2 {
        return vec![breach(1, format!("the section `{SECTION}` has no table"))];
    }
    let mut breaches = Vec::new();
    for (line, row) in &rows[1..] {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, path, functions] = cells[..] else {
            breaches.push(breach(*line, "the row has not three cells".to_string()));
            continue;
        };
        for path in quoted(path) {
            let Some(file) = files.iter().find(|file| file.path == path) else {
                breaches.push(breach(*line, format!("`{path}` does not exist")));
                continue;
            };
            let missing = quoted(functions).filter(|function| !defines(file, function));
            let what = |function| format!("`{path}` has no function `{function}`");
            breaches.extend(missing.map(|function| breach(*line, what(function))));
        }
    }
    breaches
}

/// Returns the words in backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn defines(file: &SourceFile, function: &str) -> bool {
    let code = file.code_without_tests();
    find_words(code, function).into_iter().any(|at| code[..at].trim_end().ends_with("fn"))
}

#[test]
fn steps_that_do_not_exist_are_found() {
    let found = |rows: &str| {
        let text = format!("# A\n{SECTION}\n\n| step | file | functions |\n|---|---|---|\n{rows}");
        let files = [
            SourceFile::new(DOCUMENT, &text),
            SourceFile::new("a.rs", "pub fn start<T>() {}\nfn arm() {} // fn not_code"),
        ];
        missing_steps(&files)
    };
    assert_eq!(found("| Arm | `a.rs` | `start`, `arm` |\n"), [] as [String; 0]);
    for (rows, what) in [
        (
            "| Arm | `a.rs` | `starts` |\n",
            "timers/ARCHITECTURE.md:6: `a.rs` has no function `starts`",
        ),
        ("| Arm | `a.rs` | `not_code` |\n", "no function `not_code`"),
        ("| Arm | `b.rs` | `start` |\n", "`b.rs` does not exist"),
        ("| Arm | `a.rs` |\n", "not three cells"),
        ("no table\n", "has no table"),
    ] {
        let [breach] = &found(rows)[..] else { panic!("{rows}") };
        assert!(breach.contains(what), "{breach}");
    }
    assert_eq!(missing_steps(&[SourceFile::new(DOCUMENT, "# A\n")]).len(), 1);
}
