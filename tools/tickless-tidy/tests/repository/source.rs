//! A file as the rules read it: its lines, and its code without comments and strings.
//!
//! Only `.rs` files have code. Line numbers count from 1 everywhere.

use proc_macro2::{Span, TokenStream, TokenTree};
use std::path::Path;
use std::process::Command;

/// The folders that contain the crates of this workspace.
const HOUSES: [&str; 4] = ["timers", "lab", "warp", "tools"];

/// One text file of the repository.
#[derive(PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The file, from the repository's root, with `/` between folders.
    pub path: String,
    pub lines: Vec<String>,
    /// The code, with comments and the contents of strings blanked out. Empty for other languages.
    pub code: String,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> SourceFile {
        let code = if path.ends_with(".rs") { mask(text) } else { String::new() };
        let lines = text.lines().map(str::to_string).collect();
        SourceFile { path: path.to_string(), lines, code }
    }

    /// Returns every text file of this repository. Includes new files that are not yet added, and
    /// excludes files that git ignores, as the next commit does. Omits files that are not UTF-8,
    /// such as recorded traces, and files that are deleted but still in the index.
    ///
    /// # Errors
    ///
    /// Fails if git or a listed file cannot be read.
    pub fn repository() -> std::io::Result<Vec<SourceFile>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()?;
        let listing = String::from_utf8_lossy(&listing.stdout);
        let paths = listing.split('\0').filter(|path| root.join(path).is_file());
        let read = |path| Ok((path, std::fs::read(root.join(path))?));
        let files = paths.map(read).collect::<std::io::Result<Vec<_>>>()?.into_iter();
        let text = |(path, bytes)| Some(SourceFile::new(path, &String::from_utf8(bytes).ok()?));
        Ok(files.filter_map(text).collect())
    }

    /// Returns the crate of a house that has this file in its `src/`, and the path inside it.
    pub fn library(&self) -> Option<(&str, &str)> {
        let (house, rest) = self.path.split_once('/')?;
        let (name, rest) = rest.split_once('/')?;
        let is_rust = HOUSES.contains(&house) && self.path.ends_with(".rs");
        is_rust.then_some((name, rest.strip_prefix("src/")?))
    }

    /// Returns the code before the unit tests, which by convention are the last item of a file.
    pub fn code_without_tests(&self) -> &str {
        self.code.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
    }

    /// Returns the line of an offset into [`SourceFile::code`].
    pub fn line_of(&self, offset: usize) -> usize {
        1 + self.code[..offset].matches('\n').count()
    }

    /// Returns the text for a breach of a rule in this file.
    pub fn breach(&self, line: usize, what: &str, instead: &str) -> String {
        format!("{}:{line}: {what}; {instead}", self.path)
    }
}

/// Returns the text with comments and the contents of literals blanked out, one ASCII byte per
/// character, so that lines and columns remain. Text that is not Rust is blanked out.
fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let ends = chars.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(at, _)| at + 1);
    let lines = [0].into_iter().chain(ends).collect();
    let blank = |c: &char| if *c == '\n' { b'\n' } else { b' ' };
    let mut mask = Mask { code: chars.iter().map(blank).collect(), chars, lines };
    mask.show(text.parse().unwrap_or_default());
    String::from_utf8(mask.code).unwrap_or_default()
}

/// A text, the index at which each line begins, and the text's code, with everything else blank.
struct Mask {
    chars: Vec<char>,
    lines: Vec<usize>,
    code: Vec<u8>,
}

impl Mask {
    /// Copies the tokens of the code to the output, which is blank at first.
    fn show(&mut self, tokens: TokenStream) {
        for token in tokens {
            let (from, to) = self.places(token.span());
            // A documentation comment, which the parser returns as tokens of an attribute.
            if matches!(self.chars[from..to], ['/', '/' | '*', ..]) {
                continue;
            }
            match token {
                TokenTree::Group(group) => {
                    for span in [group.span_open(), group.span_close()] {
                        let (from, to) = self.places(span);
                        self.show_between(from, to);
                    }
                    self.show(group.stream());
                }
                TokenTree::Literal(_) => {
                    let is_quote = |c: &char| matches!(c, '"' | '\'');
                    let literal = &self.chars[from..to];
                    let begin = literal.iter().position(is_quote).map(|at| from + at + 1);
                    let end = literal.iter().rposition(is_quote).map(|at| from + at);
                    self.show_between(from, begin.unwrap_or(to));
                    self.show_between(end.unwrap_or(to), to);
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => self.show_between(from, to),
            }
        }
    }

    fn places(&self, span: Span) -> (usize, usize) {
        let [from, to] =
            [span.start(), span.end()].map(|place| self.lines[place.line - 1] + place.column);
        (from, to)
    }

    fn show_between(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.code[at] = u8::try_from(self.chars[at]).ok().filter(u8::is_ascii).unwrap_or(b'_');
        }
    }
}

/// Returns whether this is a character of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the offsets at which the identifier `needle` occurs in `code`, as a whole.
pub fn find_words(code: &str, needle: &str) -> Vec<usize> {
    let is_part = |at: Option<usize>| {
        at.is_some_and(|at| code.as_bytes().get(at).is_some_and(|b| is_word(*b)))
    };
    let places = code.match_indices(needle).map(|(start, _)| start);
    places
        .filter(|start| !is_part(start.checked_sub(1)) && !is_part(Some(start + needle.len())))
        .collect()
}

#[test]
fn comments_and_strings_are_blanked_and_columns_remain() {
    for (text, code) in [
        ("a(\"x.y()\"); // b()", "a(\"     \");       "),
        ("/* a /* b */ c */d", "                 d"),
        (r#""a\"b" c"#, "\"    \" c"),
        ("r#\"a\"b\"# c", "r#\"   \"# c"),
        ("br\"\\\" c", "br\" \" c"),
        ("r#type + for\"x\"", "r#type + for\" \""),
        ("'{' '\\'' '\"' x", "' ' '  ' ' ' x"),
        ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        ("a\n\"µ\n\" // é\nb", "a\n\" \n\"     \nb"),
    ] {
        assert_eq!(mask(text), code, "{text}");
    }
}

#[test]
fn find_words_finds_whole_words() {
    assert_eq!(find_words("fn unfn fn_ a::fn fn", "fn"), [0, 15, 18]);
}

#[test]
fn files_are_recognised_by_path_and_tests_are_left_out() {
    let text = "a();\n#[cfg(test)]\nextern crate std;\nb();\n#[cfg(test)]\nmod tests {\n}\n";
    let file = |path: &str| SourceFile::new(path, text);
    assert_eq!(file("timers/a/src/b/mod.rs").library(), Some(("a", "b/mod.rs")));
    assert_eq!(file("timers/a/tests/a.rs").library(), None);
    assert_eq!(file("bench/src/main.rs").library(), None);
    let code = "a();\n#[cfg(test)]\nextern crate std;\nb();\n";
    assert_eq!(file("a.rs").code_without_tests(), code);
}
