//! Writes files atomically: they appear under their name only when they are complete.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Creates a temporary file. Other users are allowed to read the file if the umask permits that.
pub fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mode = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(mode).prefix(".tickless-").tempfile_in(folder)
}

/// Writes a file whole, or leaves what was there. A pipe or a device is written directly.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(path, content);
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    let mut file = temporary(parent(&path))?;
    file.write_all(content)?;
    persist(file, &path)
}

/// Waits until a temporary file's content is on the disk, renames the file, and waits until the new
/// name is on the disk too.
pub fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(parent(path))?.sync_all()
}
