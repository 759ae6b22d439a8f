//! A file as the rules read it: its lines, and its code as tokens, without comments and strings.
//!
//! Only `.rs` files have code. Line numbers count from 1 everywhere.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
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
    /// The code: each token with its line. A `::` is one token, and a literal is empty. Empty for
    /// other languages.
    pub code: Vec<(usize, String)>,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> SourceFile {
        let mut code = Vec::new();
        if path.ends_with(".rs") {
            add_tokens(text.parse().unwrap_or_default(), &mut code);
        }
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
    pub fn code_without_tests(&self) -> &[(usize, String)] {
        const TESTS: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
        let are_tests =
            |tokens: &[(usize, String)]| tokens.iter().map(|(_, token)| token).eq(TESTS.iter());
        let end = self.code.windows(TESTS.len()).position(are_tests);
        &self.code[..end.unwrap_or(self.code.len())]
    }

    /// Returns the text for a breach of a rule in this file.
    pub fn breach(&self, line: usize, what: &str, instead: &str) -> String {
        format!("{}:{line}: {what}; {instead}", self.path)
    }
}

/// Appends the tokens of a stream. A documentation comment is an attribute with a literal.
fn add_tokens(stream: TokenStream, code: &mut Vec<(usize, String)>) {
    for token in stream {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Parenthesis => ["(", ")"],
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket => ["[", "]"],
                    Delimiter::None => [""; 2],
                };
                code.push((line, open.to_string()));
                add_tokens(group.stream(), code);
                code.push((group.span_close().start().line, close.to_string()));
            }
            TokenTree::Literal(_) => code.push((line, String::new())),
            TokenTree::Punct(mark) if mark.as_char() == ':' && is_colon(code.last()) => {
                code.pop();
                code.push((line, "::".to_string()));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => code.push((line, token.to_string())),
        }
    }
}

fn is_colon(token: Option<&(usize, String)>) -> bool {
    token.is_some_and(|(_, token)| token == ":")
}

#[test]
fn comments_literals_and_tests_are_left_out() {
    let text = "//! crate::a\nuse b::{c}; // d\nfn e(f: &'a str) { \"g\"; r#\"h\"i\"#; '\\''; }\n\
                #[cfg(test)]\nextern crate std;\n#[cfg(test)]\nmod tests { j }";
    let file = SourceFile::new("a.rs", text);
    let code: Vec<String> =
        file.code_without_tests().iter().map(|(line, token)| format!("{line}{token}")).collect();
    let code = code.join(" ");
    assert!(code.starts_with("1# 1! 1[ 1doc 1= 1 1] 2use 2b 2:: 2{ 2c 2} 2; 3fn 3e 3( 3f 3: 3&"));
    assert!(
        code.ends_with("3{ 3 3; 3 3; 3 3; 3} 4# 4[ 4cfg 4( 4test 4) 4] 5extern 5crate 5std 5;")
    );
}

#[test]
fn files_are_recognised_by_path() {
    let file = |path: &str| SourceFile::new(path, "");
    assert_eq!(file("timers/a/src/b/mod.rs").library(), Some(("a", "b/mod.rs")));
    assert_eq!(file("timers/a/tests/a.rs").library(), None);
    assert_eq!(file("bench/src/main.rs").library(), None);
}
