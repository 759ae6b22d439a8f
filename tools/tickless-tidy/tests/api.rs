//! The public interface of the library, as committed in `docs/dev/public-api.txt`.
//!
//! It lists every item with its declaration and its methods, from the pages that rustdoc writes.
//! Implementations of other crates' traits are omitted, because they change with those crates.
//! `ci/api.sh` documents the library and runs this; `TICKLESS_API=write` updates the listing.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

const LISTING: &str = "docs/dev/public-api.txt";

/// Goal: a change of the interface is always deliberate.
#[test]
#[ignore = "needs the library's documentation: ci/api.sh makes it"]
fn public_interface_matches_the_listing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::env::var_os("TICKLESS_DOCS").expect("ci/api.sh sets the folder of the pages");
    let docs = PathBuf::from(docs);
    let mut pages = Vec::new();
    collect(&docs, &mut pages);
    pages.sort();
    let mut listing = String::new();
    for page in &pages {
        list(&docs, page, &mut listing);
    }
    assert!(listing.lines().count() > 500, "rustdoc's pages have another form:\n{listing}");
    let committed = root.join(LISTING);
    if std::env::var_os("TICKLESS_API").is_some() {
        return std::fs::write(committed, listing).expect("the listing can be written");
    }
    let before = std::fs::read_to_string(committed).expect("the listing is committed");
    let only = |these: &str, those: &str, mark| {
        let there: std::collections::BTreeSet<&str> = those.lines().collect();
        let lines = these.lines().filter(|line| !there.contains(line));
        lines.map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    let changes = only(&before, &listing, '-') + &only(&listing, &before, '+');
    assert!(
        before == listing,
        "the public interface has changed:\n{changes}if that is deliberate, record it in \
         CHANGELOG.md and run TICKLESS_API=write ci/api.sh"
    );
}

/// Collects the pages of items, without lists and hidden items.
fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the pages are there").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "slots" {
                collect(&path, pages);
            }
        } else if name.ends_with(".html") && name.matches('.').count() == 2 {
            pages.push(path);
        }
    }
}

fn list(docs: &Path, page: &Path, listing: &mut String) {
    let html = std::fs::read_to_string(page).expect("a page can be read");
    // The page of an item in a private module leads to the public one.
    if html.contains("<title>Redirection</title>") {
        return;
    }
    let path = page.strip_prefix(docs).expect("the page is in the folder").with_extension("");
    let path = path.to_string_lossy().replace('/', "::");
    let (modules, item) = path.rsplit_once("::").unwrap_or(("", &path));
    let (kind, item) = item.split_once('.').expect("a page is named after its kind");
    let parts = ["tickless", modules, item].into_iter().filter(|part| !part.is_empty());
    let _ = writeln!(listing, "{kind} {}", parts.collect::<Vec<_>>().join("::"));
    let ends = ["id=\"trait-implementations\"", "id=\"synthetic-impl", "id=\"implementors\""];
    let end = ends.iter().filter_map(|end| html.find(end)).min().unwrap_or(html.len());
    let html = &html[..end];
    for declaration in between(html, "<pre class=\"rust item-decl\"><code>", "</code></pre>") {
        let _ = writeln!(listing, "    {}", text(declaration));
    }
    for section in ["<section id=\"method.", "<section id=\"tymethod.", "<section id=\"associated"]
    {
        for part in html.split(section).skip(1) {
            if let Some(code) = between(part, "<h4 class=\"code-header\">", "</h4>").next() {
                let _ = writeln!(listing, "    {}", text(code));
            }
        }
    }
}

/// Returns the texts between these marks.
fn between<'a>(html: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(begin).skip(1).filter_map(move |rest| rest.split_once(end).map(|(found, _)| found))
}

/// Returns the visible text of some markup, on one line.
fn text(html: &str) -> String {
    let mut plain = String::new();
    let mut is_tag = false;
    for c in html.chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            // The mark of a note in the margin.
            'ⓘ' => {}
            _ if !is_tag => plain.push(c),
            _ => {}
        }
    }
    let plain = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'");
    let plain = plain.replace("&quot;", "\"").replace("&nbsp;", " ").replace("&amp;", "&");
    plain.replace("where ", " where ").split_whitespace().collect::<Vec<_>>().join(" ")
}
