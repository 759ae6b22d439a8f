//! Rules for any text: line length, paths of one machine, marks of unfinished work.
//!
//! The forbidden words are joined from two parts each, so that this file does not break its own
//! rules.

use crate::Finding;
use crate::mask::find_words;
use crate::source::SourceFile;

/// The longest line, in characters.
pub const LINE_LENGTH_MAX: usize = 100;

/// Folders of a developer's machine.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Marks of unfinished work.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("not impl", "emented"),
    concat!("not yet impl", "emented"),
];

/// Finds lines of Rust, shell or TOML that are longer than [`LINE_LENGTH_MAX`] and have no URL.
pub fn line_length(file: &SourceFile) -> Vec<Finding> {
    if !ends_in(file, &[".rs", ".sh", ".toml", ".ci/run"]) {
        return Vec::new();
    }
    let breaches = (1..).zip(&file.lines).filter_map(|(number, line)| {
        let length = line.chars().count();
        let too_long = length > LINE_LENGTH_MAX && !line.contains("://");
        too_long.then(|| {
            let what = format!("{length} characters, at most {LINE_LENGTH_MAX} fit");
            file.finding(number, "line-length", what, "break the line")
        })
    });
    breaches.collect()
}

/// Finds lines that name a folder of a developer's machine.
pub fn machine_paths(file: &SourceFile) -> Vec<Finding> {
    let breaches = (1..).zip(&file.lines).flat_map(|(number, line)| {
        let hit = MACHINE_PATHS.iter().find(|path| begins_a_path(line, path));
        hit.map(|path| {
            let what = format!("`{path}` is a folder of one machine");
            file.finding(number, "machine-path", what, "write a path from the repository's root")
        })
    });
    breaches.collect()
}

/// Finds lines with a mark of unfinished work.
pub fn unfinished_words(file: &SourceFile) -> Vec<Finding> {
    if file.path == "Cargo.lock" {
        return Vec::new();
    }
    let breaches = (1..).zip(&file.lines).flat_map(|(number, line)| {
        let hit = UNFINISHED.iter().find(|word| !find_words(line, word).is_empty());
        hit.map(|word| {
            let what = format!("`{word}` marks unfinished work");
            file.finding(
                number,
                "unfinished",
                what,
                "finish it, or file an issue and drop the mark",
            )
        })
    });
    breaches.collect()
}

fn ends_in(file: &SourceFile, endings: &[&str]) -> bool {
    endings.iter().any(|ending| file.path.ends_with(ending))
}

/// Returns whether an absolute path in `line` begins with `folder`.
fn begins_a_path(line: &str, folder: &str) -> bool {
    let is_path = |c: char| c.is_alphanumeric() || "_-.~}".contains(c);
    line.match_indices(folder).any(|(i, _)| !line[..i].ends_with(is_path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&SourceFile) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
        rule(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn long_lines_are_found() {
        let text = format!("short\n{}\n// https://a.b/{}\n", "µ".repeat(101), "c".repeat(100));
        assert_eq!(lines(line_length, "a.rs", &text), [2]);
        assert_eq!(lines(line_length, ".ci/run", &text), [2]);
        assert_eq!(lines(line_length, "a.md", &text), [] as [usize; 0]);
        assert_eq!(lines(line_length, "a.sh", &"µ".repeat(100)), [] as [usize; 0]);
    }

    #[test]
    fn machine_paths_are_found() {
        for path in MACHINE_PATHS {
            let text = format!("fine\nsee {path}me/a.rs\nsee `net{path}a`, ./x{path}b\n");
            assert_eq!(lines(machine_paths, "a.md", &text), [2]);
        }
    }

    #[test]
    fn unfinished_words_are_found() {
        for word in UNFINISHED {
            let text = format!("fine\n// {word} later\n");
            assert_eq!(lines(unfinished_words, "a.rs", &text), [2], "{word}");
            assert_eq!(lines(unfinished_words, "a.md", &text), [2], "{word}");
        }
        assert_eq!(lines(unfinished_words, "a.rs", "mktemp XXXXXX"), [] as [usize; 0]);
    }
}
