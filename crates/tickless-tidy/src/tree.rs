//! The repository's files, as git lists them.
//!
//! The list includes new files that are not yet added, and excludes files that git ignores, as the
//! next commit does.

use crate::source::SourceFile;
use std::path::Path;
use std::process::Command;

/// Returns every text file of this crate's repository.
///
/// Fails if git or a listed file cannot be read. Omits files that are not UTF-8, such as recorded
/// traces.
pub fn repository() -> Result<Vec<SourceFile>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .map_err(|e| format!("cannot run git: {e}; tidy takes the list of files from it"))?;
    if !listing.status.success() {
        let why = String::from_utf8_lossy(&listing.stderr);
        return Err(format!("git ls-files failed: {}", why.trim()));
    }
    let listing = String::from_utf8_lossy(&listing.stdout);
    let paths = listing.split('\0').filter(|path| !path.is_empty());
    paths.filter_map(|path| read(&root, path).transpose()).collect()
}

/// Reads a text file. `None` if it is binary, or deleted but still in the index.
fn read(root: &Path, path: &str) -> Result<Option<SourceFile>, String> {
    let full = root.join(path);
    if !full.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&full).map_err(|e| format!("cannot read {path}: {e}"))?;
    Ok(String::from_utf8(bytes).ok().map(|text| SourceFile::new(path, &text)))
}
