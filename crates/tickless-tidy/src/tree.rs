//! The repository's files, as git lists them.
//!
//! Files that are new and not yet added count, files that git ignores do not: what is checked
//! is what the next commit could hold.

use crate::source::SourceFile;
use std::path::Path;
use std::process::Command;

/// Every text file of the repository that this crate stands in.
///
/// Fails where git cannot be run or a listed file cannot be read. Files that are not UTF-8
/// (recorded traces, pictures) are left out.
pub fn repository() -> Result<Vec<SourceFile>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .map_err(|e| format!("cannot run git: {e}; tidy asks it for the list of files"))?;
    if !listing.status.success() {
        let why = String::from_utf8_lossy(&listing.stderr);
        return Err(format!("git ls-files failed: {}", why.trim()));
    }
    let listing = String::from_utf8_lossy(&listing.stdout);
    let paths = listing.split('\0').filter(|path| !path.is_empty());
    paths.filter_map(|path| read(&root, path).transpose()).collect()
}

/// A text file; `None` where it is binary, or deleted but still in the index.
fn read(root: &Path, path: &str) -> Result<Option<SourceFile>, String> {
    let full = root.join(path);
    if !full.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&full).map_err(|e| format!("cannot read {path}: {e}"))?;
    Ok(String::from_utf8(bytes).ok().map(|text| SourceFile::new(path, &text)))
}
