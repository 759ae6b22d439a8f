//! The file into which a recording is written: text, compressed with gzip if its name ends in
//! `.gz`.

use crate::command::confirm;
use flate2::{Compression, write::GzEncoder};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tickless_trace::record::RecordError;

/// The output file, open for writing. It keeps its earlier content until the recording has
/// succeeded.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl Output {
    /// Opens the file before the recording, so that a file that cannot be written is reported at
    /// once.
    pub(crate) fn open(path: &Path) -> Result<Output, RecordError> {
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| RecordError::Output { path: path.into(), error })?;
        Ok(Output { path: path.into(), file, is_new })
    }

    /// Removes the file if `open` has created it. Called when the recording has failed.
    pub(crate) fn abandon(self) {
        if self.is_new {
            // Ignore errors: an empty file that remains does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Replaces the file's content by what `write` writes.
    pub(crate) fn replace(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let Output { path, file, .. } = self;
        let explain = |error: io::Error| RecordError::Output { path: path.clone(), error };
        // Truncate only a regular file: a pipe has no length.
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            file.set_len(0).map_err(explain)?;
        }
        let mut file = BufWriter::new(file);
        if is_gzip(&path) {
            let mut packed = GzEncoder::new(&mut file, Compression::default());
            write(&mut packed).map_err(|error| named(error, &path))?;
            packed.finish().map_err(explain)?;
        } else {
            write(&mut file).map_err(|error| named(error, &path))?;
        }
        file.flush().map_err(explain)
    }
}

/// Succeeds if the file does not exist, is empty, or the user agrees to overwrite it.
///
/// # Errors
/// [`RecordError::Exists`] if the user does not agree, or cannot be asked because there is no
/// terminal.
pub(crate) fn may_overwrite(path: &Path) -> Result<(), RecordError> {
    let has_content = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
    if !has_content || confirm(format_args!("{}: overwrite it?", path.display())) {
        return Ok(());
    }
    Err(RecordError::Exists { path: path.into() })
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Adds the file's name to an error that `write` has returned without knowing it.
fn named(error: RecordError, path: &Path) -> RecordError {
    match error {
        RecordError::Output { error, .. } => RecordError::Output { path: path.into(), error },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tickless-output-{}-{name}", std::process::id()))
    }

    #[test]
    fn the_name_selects_gzip_and_former_content_is_replaced() {
        for name in ["a.txt", "a.txt.gz"] {
            let path = path(name);
            std::fs::write(&path, "x".repeat(9_999)).unwrap();
            let output = Output::open(&path).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 9_999, "not before it is known");
            output
                .replace(|out| {
                    let written = out.write_all(b"trace\n");
                    written.map_err(|error| RecordError::Output { path: "".into(), error })
                })
                .unwrap();
            let found = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let mut text = String::new();
            match name {
                "a.txt" => text = String::from_utf8(found).unwrap(),
                _ => drop(GzDecoder::new(found.as_slice()).read_to_string(&mut text).unwrap()),
            }
            assert_eq!(text, "trace\n");
        }
    }

    #[test]
    fn an_abandoned_file_is_removed_only_if_it_is_new() {
        let path = path("abandoned.txt");
        Output::open(&path).unwrap().abandon();
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        Output::open(&path).unwrap().abandon();
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_name_that_cannot_be_written_is_refused_at_once() {
        let error = Output::open(Path::new("/no/such/place/t.gz")).unwrap_err().to_string();
        assert!(error.contains("/no/such/place/t.gz") && error.contains("-o"), "{error}");
    }
}
