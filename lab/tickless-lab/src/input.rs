//! Reads files that a user names. The length is limited, because reading a device such as
//! `/dev/zero` would never end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest file that is read. Files of machines and results are far shorter.
const BYTES_MAX: u64 = 64 << 20;

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is longer than 64 MiB, the limit for such files",
        ));
    }
    Ok(bytes)
}

pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_files_are_refused() {
        let error = read(Path::new("/dev/zero")).expect_err("it has no end");
        assert!(error.to_string().contains("longer than 64 MiB"), "{error}");
        assert!(read_text(Path::new("Cargo.toml")).is_ok_and(|text| text.contains("[package]")));
    }
}
