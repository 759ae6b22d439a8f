//! A file as the rules read it: its lines, and its code without comments and strings.
//!
//! Only `.rs` files have code. Line numbers count from 1 everywhere.

use crate::Finding;
use crate::mask::mask;

/// One text file of the repository.
#[derive(PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The file, from the repository's root, with `/` between folders.
    pub path: String,
    /// The lines.
    pub lines: Vec<String>,
    /// The code, with comments and the contents of strings blanked out. Empty for other languages.
    pub code: String,
}

impl SourceFile {
    /// Splits a file. O(length).
    pub fn new(path: &str, text: &str) -> SourceFile {
        let code = if path.ends_with(".rs") { mask(text) } else { String::new() };
        let lines = text.lines().map(str::to_string).collect();
        SourceFile { path: path.to_string(), lines, code }
    }

    /// Returns whether this is a Rust file.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the crate under `crates/` that has this file in its `src/`, and the file's path
    /// inside `src/`.
    pub fn library(&self) -> Option<(&str, &str)> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        self.is_rust().then_some((name, rest.strip_prefix("src/")?))
    }

    /// Returns the code before the module of unit tests, which by convention is the last item of a
    /// file.
    pub fn code_without_tests(&self) -> &str {
        self.code.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
    }

    /// Returns the line of an offset into [`SourceFile::code`].
    pub fn line_of(&self, offset: usize) -> usize {
        1 + self.code[..offset].matches('\n').count()
    }

    /// Makes a finding: a breach of `rule` in this file.
    pub fn finding(
        &self,
        line: usize,
        rule: &'static str,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) -> Finding {
        let (path, what, instead) = (self.path.clone(), what.into(), instead.into());
        Finding { path, line, rule, what, instead }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_files_are_recognised_by_path() {
        let library = |path: &str| {
            let file = SourceFile::new(path, "");
            file.library().map(|(name, inside)| format!("{name} {inside}"))
        };
        assert_eq!(library("crates/a/src/b/mod.rs").as_deref(), Some("a b/mod.rs"));
        assert_eq!(library("crates/a/tests/a.rs"), None);
        assert_eq!(library("bench/src/main.rs"), None);
    }

    #[test]
    fn tests_are_left_out() {
        let file = SourceFile::new(
            "a.rs",
            "a();\n#[cfg(test)]\nextern crate std;\nb();\n#[cfg(test)]\nmod tests {\n}\n",
        );
        assert_eq!(file.code_without_tests(), "a();\n#[cfg(test)]\nextern crate std;\nb();\n");
    }
}
