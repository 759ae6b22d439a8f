//! The built program, run as a user runs it.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tickless");

pub fn tickless(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).stdin(Stdio::null()).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns what a command prints that must succeed.
pub fn prints(args: &[&str]) -> String {
    let output = tickless(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Returns the JSON of a command that must succeed, or whose verdict may be bad.
pub fn json(args: &[&str]) -> Value {
    let output = tickless(&[args, &["--format", "json"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the name of a file of this test run.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Writes a file of this test run.
pub fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    std::fs::write(path(name), content).unwrap();
    path(name)
}

/// Returns a page of the book.
pub fn page(name: &str) -> String {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src");
    std::fs::read_to_string(format!("{book}/{name}.md")).unwrap()
}

/// Returns the keys of an object, which this page of the book must name. Which keys there are is
/// compared with the page about JSON.
pub fn keys_named_on<'a>(name: &str, object: &'a Value) -> BTreeSet<&'a str> {
    let page = page(name);
    let keys: BTreeSet<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    for key in &keys {
        assert!(page.contains(&format!("`{key}`")), "docs/book/src/{name}.md lacks {key}");
    }
    keys
}
