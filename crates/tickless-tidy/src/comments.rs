//! What a newcomer reads first: a file's opening sentence, and how public items introduce
//! themselves.

use crate::Finding;
use crate::source::SourceFile;

/// Every file under a crate's `src` opens with a `//!` paragraph that ends with a full stop.
pub fn module_comment(file: &SourceFile) -> Vec<Finding> {
    if file.library().is_none() {
        return Vec::new();
    }
    let opening = file.lines.iter().map_while(|line| line.raw.strip_prefix("//!"));
    let paragraph: Vec<&str> =
        opening.map(str::trim).take_while(|sentence| !sentence.is_empty()).collect();
    let breach = match paragraph.last() {
        None => (
            1,
            "the file does not say what it is for",
            "open it with a `//!` comment: purpose, guarantees, ground rules",
        ),
        Some(last) if !last.ends_with('.') => (
            paragraph.len(),
            "the first `//!` paragraph is not a sentence",
            "end it with a full stop",
        ),
        Some(_) => return Vec::new(),
    };
    vec![file.finding(breach.0, "module-comment", breach.1, breach.2)]
}

/// The doc comments of modules and `pub` items do not start with a lowercase letter.
pub fn doc_comment_start(file: &SourceFile) -> Vec<Finding> {
    if file.library().is_none() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut inside = None;
    for (number, line) in file.numbered() {
        let marker = line.comment.get(..3).filter(|marker| ["///", "//!"].contains(marker));
        let text = line.comment.get(3..).unwrap_or_default().trim_start();
        if marker.is_some()
            && marker != inside
            && text.starts_with(|c: char| c.is_lowercase())
            && is_public_facing(file, number)
        {
            let instead = "start the sentence uppercase, or put code in backticks";
            findings.push(file.finding(number, "doc-comment", "starts lowercase", instead));
        }
        inside = marker;
    }
    findings
}

/// Is the doc comment at this line a module's, or does it stand on a `pub` item?
fn is_public_facing(file: &SourceFile, number: usize) -> bool {
    let mut below = file.lines[number - 1..].iter();
    let item = below.find(|line| line.has_code() && !line.is_attribute());
    file.lines[number - 1].comment.starts_with("//!")
        || item.is_some_and(|line| line.code.trim_start().starts_with("pub "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&SourceFile) -> Vec<Finding>, text: &str) -> Vec<usize> {
        let file = SourceFile::new("crates/tickless/src/a.rs", text);
        rule(&file).iter().map(|finding| finding.line).collect()
    }

    const NONE: [usize; 0] = [];

    #[test]
    fn files_without_an_opening_are_found() {
        assert_eq!(lines(module_comment, "fn a() {}\n"), [1]);
        assert_eq!(lines(module_comment, "use a;\n//! Late.\n"), [1]);
        assert_eq!(lines(module_comment, ""), [1]);
        assert_eq!(lines(module_comment, "//! No full stop\n//! at its end\n//!\n//! B.\n"), [2]);
        assert_eq!(lines(module_comment, "//! A sentence,\n//! ended.\n//!\n//! more\n"), NONE);
        let test = SourceFile::new("crates/tickless/tests/a.rs", "fn a() {}");
        assert_eq!(module_comment(&test), []);
    }

    #[test]
    fn lowercase_openings_are_found() {
        let text = "//! lowercase.\n/// returns a.\n#[inline]\npub fn a() {}\n";
        assert_eq!(lines(doc_comment_start, text), [1, 2]);
        let text = "//! A.\n//! b.\n\n/// `a` and\n/// more.\npub fn a() {}\n\n\
                    /// floor(a / b), private.\nb: u64,\n/// 32 bytes.\npub c: u64,\n";
        assert_eq!(lines(doc_comment_start, text), NONE);
    }
}
