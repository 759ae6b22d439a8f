//! Finds examples in documentation that never run.
//!
//! A crate without examples has `doctest = false`, so that `cargo test` does not search it for
//! examples. An example that is added later would never run.

use crate::Finding;
use crate::source::SourceFile;

/// Finds examples in the documentation of crates whose manifest turns the tests of examples off.
pub fn unrun_examples(files: &[SourceFile]) -> Vec<Finding> {
    let manifests = files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("Cargo.toml")?;
        let is_off = file.lines.iter().any(|line| line.trim() == "doctest = false");
        is_off.then(|| format!("{folder}src/"))
    });
    let folders: Vec<String> = manifests.collect();
    let is_in = |file: &&SourceFile| folders.iter().any(|folder| file.path.starts_with(folder));
    files.iter().filter(|file| file.is_rust()).filter(is_in).filter_map(first_example).collect()
}

fn first_example(file: &SourceFile) -> Option<Finding> {
    let is_fence = |line: &String| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        text.is_some_and(|text| text.trim_start().starts_with("```"))
            || line.starts_with("#![doc = include_str")
            || line.starts_with("#[doc = include_str")
    };
    let at = file.lines.iter().position(is_fence)?;
    let instead = "remove `doctest = false` from the crate's Cargo.toml";
    Some(file.finding(at + 1, "unrun-example", "nothing runs this example", instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_without_doctests_are_found() {
        let off = "[lib]\ndoctest = false\n";
        let files = [
            ("crates/a/Cargo.toml", off),
            ("crates/a/src/lib.rs", "//! Text.\n//! ```\n//! a::b();\n//! ```\n"),
            ("crates/a/src/b.rs", "    /// ```text\n"),
            ("crates/a/src/c.rs", "// ```\nconst C: &str = \"```\";\n"),
            ("crates/a/src/d.rs", "#![doc = include_str!(\"../README.md\")]\n"),
            ("crates/ab/Cargo.toml", "[lib]\nname = \"ab\"\n"),
            ("crates/ab/src/lib.rs", "//! ```\n"),
        ];
        let files = files.map(|(path, text)| SourceFile::new(path, text));
        let found: Vec<_> =
            unrun_examples(&files).into_iter().map(|at| (at.path, at.line)).collect();
        let want = [("lib", 2), ("b", 1), ("d", 1)];
        assert_eq!(found, want.map(|(file, line)| (format!("crates/a/src/{file}.rs"), line)));
    }
}
