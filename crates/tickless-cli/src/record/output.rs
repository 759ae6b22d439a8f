//! The file that is written: text, or gzip if its name says so.

use flate2::{Compression, write::GzEncoder};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tickless_trace::record::RecordError;

/// A file that can be written, and is still what it was.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl Output {
    /// Opens it, so that a name that cannot be written is known before anything is recorded.
    pub(crate) fn open(path: &Path) -> Result<Output, RecordError> {
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| RecordError::Output { path: path.into(), error })?;
        Ok(Output { path: path.into(), file, is_new })
    }

    /// Leaves everything as it was found.
    pub(crate) fn abandon(self) {
        if self.is_new {
            // An empty file is no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Puts what `write` writes in the place of what was there.
    pub(crate) fn replace(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let Output { path, file, .. } = self;
        let explain = |error: io::Error| RecordError::Output { path: path.clone(), error };
        // What is no file, such as a pipe, has no length.
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

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Who wrote did not know the file's name.
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

    /// Goal: the name decides about packing, and nothing of a longer file is left.
    #[test]
    fn the_name_says_how() {
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

    /// Goal: a file that was not there is not there afterwards, and one that was is as it was.
    #[test]
    fn nothing_is_left_of_what_was_not_needed() {
        let path = path("abandoned.txt");
        Output::open(&path).unwrap().abandon();
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        Output::open(&path).unwrap().abandon();
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let error = Output::open(Path::new("/no/such/place/t.gz")).unwrap_err().to_string();
        assert!(error.contains("/no/such/place/t.gz") && error.contains("-o"), "{error}");
    }
}
