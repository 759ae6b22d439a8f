//! The file of a recording: text, compressed with gzip if its name ends in `.gz`, or a `trace.dat`.

use crate::command::Failure;
use flate2::{Compression, write::GzEncoder};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tickless_lab::output::Target;
use tickless_trace::record::RecordError;

#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    target: Target,
}

impl Output {
    /// Opens the file before the recording begins, to report early if it cannot be written. Without
    /// [`replace`](Self::replace), nothing changes.
    pub(crate) fn open(path: &Path) -> Result<Output, Failure> {
        let target = Target::open(path).map_err(|error| Failure::file(path, error))?;
        Ok(Output { path: path.into(), target })
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
        let Output { path, target } = self;
        write(target.file()).map_err(|error| match error {
            RecordError::Output(error) => Failure::file(&path, error),
            other => other.into(),
        })?;
        target.finish().map_err(|error| Failure::file(&path, error))
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

    #[test]
    fn the_name_selects_gzip() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a.txt", "a.txt.gz"].map(|name| folder.path().join(name)) {
            drop(Output::open(&path).unwrap());
            assert!(!path.exists());
            let output = Output::open(&path).unwrap();
            output.replace(|out| out.write_all(b"trace\n").map_err(RecordError::Output)).unwrap();
            let found = std::fs::read(&path).unwrap();
            let mut text = String::from_utf8(found.clone()).unwrap_or_default();
            if has_extension(&path, "gz") {
                GzDecoder::new(found.as_slice()).read_to_string(&mut text).unwrap();
            }
            assert_eq!(text, "trace\n");
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "no temporary file is left");
    }

    #[test]
    fn a_link_stays_and_a_device_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let [link, file] = ["link", "file"].map(|name| folder.path().join(name));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let write = |out: &mut dyn Write| out.write_all(b"new").map_err(RecordError::Output);
        Output::open(&link).unwrap().replace(write).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        Output::open(Path::new("/dev/null")).unwrap().replace(write).unwrap();
    }
}
