//! The file of a recording: text, compressed with gzip if its name ends in `.gz`, or a `trace.dat`.

use crate::command::Failure;
use flate2::{Compression, write::GzEncoder};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tickless_trace::record::RecordError;

#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl Output {
    /// Opens the file before the recording begins, to report early if it cannot be written.
    pub(crate) fn open(path: &Path) -> Result<Output, Failure> {
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| Failure::file(path, error))?;
        Ok(Output { path: path.into(), file, is_new })
    }

    pub(crate) fn abandon(self) {
        if self.is_new {
            // Ignore errors: an empty file that remains does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    pub(crate) fn replace(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), RecordError>,
    ) -> Result<(), Failure> {
        let is_packed = has_extension(&self.path, "gz");
        self.replace_file(|file| {
            let mut file = BufWriter::new(file);
            if is_packed {
                let mut packed = GzEncoder::new(&mut file, Compression::default());
                write(&mut packed)?;
                packed.finish().map_err(RecordError::Output)?;
            } else {
                write(&mut file)?;
            }
            file.flush().map_err(RecordError::Output)
        })
    }

    /// Calls `write` to replace the file's content. `write` gets the file without buffer or gzip.
    pub(crate) fn replace_file(
        self,
        write: impl FnOnce(&File) -> Result<(), RecordError>,
    ) -> Result<(), Failure> {
        let Output { path, file, .. } = self;
        // Truncate only a regular file: a pipe has no length.
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            file.set_len(0).map_err(|error| Failure::file(&path, error))?;
        }
        write(&file).map_err(|error| match error {
            RecordError::Output(error) => Failure::file(&path, error),
            other => other.into(),
        })
    }
}

/// Returns an error if the file has content, which must not be overwritten.
pub(crate) fn may_overwrite(path: &Path) -> Result<(), Failure> {
    let has_content = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
    if !has_content {
        return Ok(());
    }
    Err(Failure::new(format_args!(
        "{}: is there already. Overwrite it with --force, or name another file with -o",
        path.display()
    )))
}

/// Returns whether a file is for trace-cmd and KernelShark: whether its name ends in `.dat`.
pub(super) fn is_dat(path: &Path) -> bool {
    has_extension(path, "dat")
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    /// Goal: the name selects gzip, former content is replaced, and a file that is abandoned
    /// without a recording is removed only if it is new.
    #[test]
    fn the_name_selects_gzip_and_former_content_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a.txt", "a.txt.gz"].map(|name| folder.path().join(name)) {
            Output::open(&path).unwrap().abandon();
            assert!(!path.exists());
            std::fs::write(&path, "x".repeat(9_999)).unwrap();
            Output::open(&path).unwrap().abandon();
            let output = Output::open(&path).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 9_999, "not before it is known");
            output.replace(|out| out.write_all(b"trace\n").map_err(RecordError::Output)).unwrap();
            let found = std::fs::read(&path).unwrap();
            let mut text = String::from_utf8(found.clone()).unwrap_or_default();
            if has_extension(&path, "gz") {
                GzDecoder::new(found.as_slice()).read_to_string(&mut text).unwrap();
            }
            assert_eq!(text, "trace\n");
        }
    }
}
