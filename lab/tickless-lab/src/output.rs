//! Writes files atomically: they appear under their name only when they are complete.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
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

/// A file that is being written.
#[derive(Debug)]
pub enum Target {
    /// Gets its name when it is complete, so a full disk or a kill leaves what was there before.
    Whole(NamedTempFile, PathBuf),
    /// A pipe or a device, which is written directly.
    Stream(File),
}

impl Target {
    /// Opens a file. Without [`finish`](Self::finish), a regular file does not change.
    pub fn open(path: &Path) -> io::Result<Target> {
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(Target::Stream(OpenOptions::new().write(true).open(path)?));
        }
        // The file that a link leads to is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        Ok(Target::Whole(temporary(parent(&path))?, path))
    }

    pub fn file(&self) -> &File {
        match self {
            Target::Whole(file, _) => file.as_file(),
            Target::Stream(file) => file,
        }
    }

    pub fn finish(self) -> io::Result<()> {
        match self {
            Target::Whole(file, path) => persist(file, &path),
            Target::Stream(_) => Ok(()),
        }
    }
}

pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = Target::open(path)?;
    target.file().write_all(content)?;
    target.finish()
}

/// Waits until a temporary file's content is on the disk, renames the file, and waits until the new
/// name is on the disk too.
pub fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(parent(path))?.sync_all()
}
