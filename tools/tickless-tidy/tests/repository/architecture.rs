//! Checks the tables of the houses' ARCHITECTURE.md that lead through the code: every file and
//! function that they name exists.

use crate::source::SourceFile;

/// Finds rows of such tables with a file that does not exist, or a function that it does not
/// define. Their second column is headed `file`.
pub fn missing_steps(files: &[SourceFile]) -> Vec<String> {
    let pages = files.iter().filter(|file| file.path.ends_with("/ARCHITECTURE.md"));
    pages.flat_map(|page| missing_in(page, files)).collect()
}

fn missing_in(page: &SourceFile, files: &[SourceFile]) -> Vec<String> {
    let breach = |line, what: String| {
        page.breach(line, &what, "follow the code again, and name what is there")
    };
    let (mut breaches, mut tables, mut is_table) = (Vec::new(), 0, false);
    for (line, row) in (1..).zip(&page.lines) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        match cells[..] {
            _ if !row.starts_with('|') => is_table = false,
            [_, "file", _] => (tables, is_table) = (tables + 1, true),
            [_, path, functions] if is_table => {
                for path in quoted(path) {
                    let Some(file) = files.iter().find(|file| file.path == path) else {
                        breaches.push(breach(line, format!("`{path}` does not exist")));
                        continue;
                    };
                    let missing = quoted(functions).filter(|function| !defines(file, function));
                    let what = |function| format!("`{path}` has no function `{function}`");
                    breaches.extend(missing.map(|function| breach(line, what(function))));
                }
            }
            _ if is_table && row.starts_with("| ") => {
                breaches.push(breach(line, "the row has not three cells".to_string()));
            }
            _ => {}
        }
    }
    if tables == 0 {
        breaches.push(breach(1, "no table has a column `file`".to_string()));
    }
    breaches
}

/// Returns the words in backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn defines(file: &SourceFile, function: &str) -> bool {
    let code = file.code_without_tests();
    code.windows(2).any(|pair| pair[0].1 == "fn" && pair[1].1 == function)
}

#[test]
fn steps_that_do_not_exist_are_found() {
    let found = |rows: &str| {
        let text = format!("# A\n\n| step | file | functions |\n|---|---|---|\n{rows}");
        let files = [
            SourceFile::new("timers/ARCHITECTURE.md", &text),
            SourceFile::new("a.rs", "pub fn start<T>() {}\nfn arm() {} // fn not_code"),
        ];
        missing_steps(&files)
    };
    assert_eq!(found("| Arm | `a.rs` | `start`, `arm` |\n"), [] as [String; 0]);
    for (rows, what) in [
        (
            "| Arm | `a.rs` | `starts` |\n",
            "timers/ARCHITECTURE.md:5: `a.rs` has no function `starts`",
        ),
        ("| Arm | `a.rs` | `not_code` |\n", "no function `not_code`"),
        ("| Arm | `b.rs` | `start` |\n", "`b.rs` does not exist"),
        ("| Arm | `a.rs` |\n", "not three cells"),
    ] {
        let [breach] = &found(rows)[..] else { panic!("{rows}") };
        assert!(breach.contains(what), "{breach}");
    }
    assert_eq!(missing_steps(&[SourceFile::new("lab/ARCHITECTURE.md", "# A\n")]).len(), 1);
}
