//! A file as the rules see it: lines of code and comment, test regions, functions.
//!
//! Only `.rs` files are taken apart; any other text has raw lines and nothing else. Line
//! numbers count from 1 everywhere.

use crate::Finding;
use crate::mask::{find_words, is_word, mask};

/// One line of a file.
#[derive(PartialEq, Eq, Debug)]
pub struct Line {
    /// The line as it is.
    pub raw: String,
    /// Its code, with comments and the insides of strings blanked out. Empty outside Rust.
    pub code: String,
    /// Its comment, with the `//`. Empty outside Rust.
    pub comment: String,
    /// Is it compiled under test only?
    pub test: bool,
}

impl Line {
    /// Does anything but blanks and comments stand here?
    pub fn has_code(&self) -> bool {
        !self.code.trim().is_empty()
    }

    /// Is this an attribute on a line of its own?
    pub fn is_attribute(&self) -> bool {
        self.code.trim_start().starts_with("#[")
    }
}

/// A function and where it stands.
#[derive(PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// The line of its closing brace, or of the semicolon of a declaration.
    pub last_line: usize,
    /// What stands before `fn`: `pub const`, say.
    pub qualifiers: String,
    /// What stands between its parentheses.
    pub parameters: String,
}

/// One text file of the repository.
#[derive(PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The file, from the repository's root, with `/` between folders.
    pub path: String,
    /// Its lines, in order.
    pub lines: Vec<Line>,
    /// All of [`Line::code`], joined by newlines.
    pub code: String,
}

impl SourceFile {
    /// Takes a file apart. O(length).
    pub fn new(path: &str, text: &str) -> SourceFile {
        let masked = if path.ends_with(".rs") { Some(mask(text)) } else { None };
        let (code, comments) = masked.map(|m| (m.code, m.comments)).unwrap_or_default();
        let mut code_lines = code.lines();
        let mut comments = comments.into_iter();
        let lines = text.lines().map(|raw| Line {
            raw: raw.to_string(),
            code: code_lines.next().unwrap_or_default().to_string(),
            comment: comments.next().unwrap_or_default(),
            test: is_test_path(path),
        });
        let mut file = SourceFile { path: path.to_string(), lines: lines.collect(), code };
        file.mark_tests();
        file
    }

    /// Is this Rust?
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate under `crates/` that has this file in its `src/`.
    pub fn library(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        (self.is_rust() && rest.starts_with("src/")).then_some(name)
    }

    /// The lines with their numbers, from 1.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
    }

    /// The line that an offset into [`SourceFile::code`] is on.
    pub fn line_of(&self, offset: usize) -> usize {
        1 + self.code[..offset].matches('\n').count()
    }

    /// A breach of `rule` in this file.
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

    /// The comment that stands above a line: above the statement it belongs to, and above
    /// that statement's attributes, without a blank line between.
    pub fn comment_above(&self, line: usize) -> String {
        let mut first = line - 1;
        while first > 0 && continues(&self.lines[first - 1]) {
            first -= 1;
        }
        let above = self.lines[..first].iter().rev();
        let above =
            above.take_while(|l| l.is_attribute() || (!l.has_code() && !l.comment.is_empty()));
        let mut comment: Vec<&str> = above.map(|l| l.comment.trim()).collect();
        comment.reverse();
        comment.join("\n")
    }

    /// Every function and method, in order; nested ones too.
    pub fn functions(&self) -> Vec<Function> {
        find_words(&self.code, "fn").into_iter().filter_map(|at| self.function_at(at)).collect()
    }

    fn function_at(&self, at: usize) -> Option<Function> {
        let rest = self.code[at + 2..].trim_start();
        let name_len = rest.bytes().take_while(|b| is_word(*b)).count();
        if name_len == 0 {
            return None; // A pointer's type: `fn(u64)`.
        }
        let after_name = self.code.len() - rest.len() + name_len;
        let open = after_name + skip_generics(&self.code[after_name..]);
        let close = matching_end(&self.code, open);
        let before = &self.code[..at];
        let start = before.rfind([';', '{', '}', ']']).map_or(0, |i| i + 1);
        Some(Function {
            name: rest[..name_len].to_string(),
            line: self.line_of(at),
            last_line: self.line_of(item_end(&self.code, open)),
            qualifiers: before[start..].trim().to_string(),
            parameters: self.code.get(open + 1..close).unwrap_or_default().to_string(),
        })
    }

    /// Marks what `#[cfg(test)]` and `#[test]` stand on.
    fn mark_tests(&mut self) {
        for attribute in ["#[cfg(test)]", "#[cfg(all(test", "#[test]"] {
            for (start, _) in self.code.match_indices(attribute) {
                let item = start + self.code[start..].find(']').unwrap_or(0) + 1;
                let (first, last) = (self.line_of(start), self.line_of(item_end(&self.code, item)));
                self.lines[first - 1..last].iter_mut().for_each(|line| line.test = true);
            }
        }
    }
}

/// Files that are compiled for tests, benches and examples only.
fn is_test_path(path: &str) -> bool {
    let is_test =
        |part| matches!(part, "tests" | "benches" | "bench" | "examples" | "fuzz" | "tests.rs");
    path.split('/').any(is_test)
}

/// Does the statement on this line go on in the next?
fn continues(line: &Line) -> bool {
    let ends = |c| line.code.trim_end().ends_with(c);
    line.has_code() && !line.is_attribute() && !ends(';') && !ends('{') && !ends('}') && !ends(',')
}

/// How long the `<...>` at the start of `code` is, with the blanks around it.
fn skip_generics(code: &str) -> usize {
    let mut depth = 0;
    let mut previous = ' ';
    for (i, c) in code.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if previous != '-' => depth -= 1,
            '(' if depth == 0 => return i,
            _ => {}
        }
        previous = c;
    }
    code.len()
}

/// Where the item that starts at or before `from` ends: its semicolon or closing brace.
fn item_end(code: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(c) = code.as_bytes().get(at) {
        match c {
            b';' => return at,
            b'{' => return matching_end(code, at),
            b'(' | b'[' => at = matching_end(code, at),
            _ => {}
        }
        at += 1;
    }
    code.len()
}

/// Where the bracket that opens at `open` is closed.
fn matching_end(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (i, c) in code.bytes().enumerate().skip(open) {
        match c {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_lines(text: &str) -> Vec<usize> {
        let file = SourceFile::new("crates/x/src/lib.rs", text);
        file.numbered().filter(|(_, line)| line.test).map(|(number, _)| number).collect()
    }

    #[test]
    fn test_regions_are_found() {
        assert_eq!(test_lines("a();\n#[cfg(test)]\nmod tests {\n    b();\n}\nc();"), [2, 3, 4, 5]);
        assert_eq!(test_lines("#[cfg(test)]\nuse a;\nb();"), [1, 2]);
        assert_eq!(test_lines("#[test]\nfn a(b: [u8; 2]) {\n}\nc();"), [1, 2, 3]);
        assert_eq!(test_lines("#[cfg(not(test))]\nmod a {\n}"), [] as [usize; 0]);
        let file = SourceFile::new("crates/x/src/wheel/tests.rs", "a();");
        assert!(file.lines[0].test);
    }

    #[test]
    fn functions_are_found_with_their_parts() {
        let text = "pub const fn a<F: Fn(u8) -> bool>(\n    f: F,\n) -> [u8; 2]\nwhere\n\
                    F: X,\n{\n}\ntype P = fn(u64);\ntrait T { fn b(&self); }";
        let file = SourceFile::new("a.rs", text);
        let functions = file.functions();
        assert_eq!(functions.len(), 2);
        assert_eq!((functions[0].name.as_str(), functions[0].line), ("a", 1));
        assert_eq!(functions[0].last_line, 7);
        assert_eq!(functions[0].qualifiers, "pub const");
        assert_eq!(functions[0].parameters.trim(), "f: F,");
        assert_eq!((functions[1].name.as_str(), functions[1].last_line), ("b", 9));
    }

    #[test]
    fn the_comment_above_a_statement_is_found() {
        let text = "// no\n\n// one\n// two\n#[inline]\nlet a =\n    b;\nlet c = d;";
        let file = SourceFile::new("a.rs", text);
        assert_eq!(file.comment_above(7).trim(), "// one\n// two");
        assert_eq!(file.comment_above(8), "");
    }

    #[test]
    fn a_library_file_is_told_from_its_path() {
        let library = |path: &str| SourceFile::new(path, "").library().map(str::to_string);
        assert_eq!(library("crates/tickless/src/host/mod.rs").as_deref(), Some("tickless"));
        assert_eq!(library("crates/tickless/tests/a.rs"), None);
        assert_eq!(library("bench/src/main.rs"), None);
    }
}
