//! Opens a trace as parts of a text. Gzip and binary files are recognised by their first bytes.
//!
//! A part has whole lines, so a trace of any size needs the memory of a few parts. If reading
//! fails, the lines before the failure are still returned.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::problem::{Cause, Unusable};
use super::{dat, perf};
use crate::list::List;

/// No event prints a line this long, its end included. Longer lines are skipped, so that a file
/// without line ends does not fill the memory.
const LINE_LEN_MAX: usize = 64 * 1024;

/// A trace: a text, or the whole file of a recording.
pub(super) enum Input<'a> {
    Text(Lines<'a>),
    Dat(List<u8>),
    Perf(List<u8>),
}

/// Returns the lines of a part of a text, without their ends, or why they cannot be used.
pub(super) fn lines(mut part: &[u8]) -> impl Iterator<Item = Result<&[u8], Cause>> {
    std::iter::from_fn(move || {
        let rest = part;
        // A slice can be read without an error.
        let length = part.skip_until(b'\n').ok().filter(|length| *length > 0)?;
        Some(match rest[..length].strip_suffix(b"\n") {
            _ if length > LINE_LEN_MAX => Err(Cause::LineTooLong),
            // It was perhaps cut off anywhere.
            None => Err(Cause::LastLineCut),
            Some(line) => Ok(line.strip_suffix(b"\r").unwrap_or(line)),
        })
    })
}

pub(super) struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    /// The beginning of the next part: what was read behind the last line end.
    begun: Vec<u8>,
    pub(super) is_gzip: bool,
    pub(super) error: Option<io::Error>,
}

/// Opens a trace, compressed or not. Refuses formats that another program must convert first.
pub(super) fn open<'a>(mut input: impl Read + 'a) -> Result<Input<'a>, Unusable> {
    let mut head = Vec::new();
    match input.by_ref().take(512).read_to_end(&mut head) {
        // The next read fails, too, and reports the error behind what was read here.
        Ok(_) | Err(_) if !head.is_empty() => {}
        Ok(_) => return Err(Unusable::Empty),
        Err(error) => return Err(Unusable::Read(error)),
    }
    let is_gzip = head.starts_with(&[0x1f, 0x8b]);
    let whole = BufReader::with_capacity(LINE_LEN_MAX, Cursor::new(head).chain(input));
    let mut reader: Box<dyn BufRead + 'a> = if is_gzip {
        Box::new(BufReader::with_capacity(LINE_LEN_MAX, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    };
    // Ignore an error here: the first read of a line fails in the same way, and reports it.
    let head = reader.fill_buf().unwrap_or_default();
    let (is_dat, is_perf) = (head.starts_with(dat::MAGIC), head.starts_with(perf::MAGIC));
    if is_dat || is_perf {
        let mut file = List::default();
        loop {
            let part = reader.fill_buf().map_err(Unusable::Read)?;
            if part.is_empty() {
                break;
            }
            file.extend_from_slice(part);
            let size = part.len();
            reader.consume(size);
        }
        return Ok(if is_dat { Input::Dat(file) } else { Input::Perf(file) });
    }
    if let Some((what, with)) = other_format(head) {
        return Err(Unusable::Convert { what, with });
    }
    Ok(Input::Text(Lines { reader, begun: Vec::new(), is_gzip, error: None }))
}

impl Lines<'_> {
    /// Returns the next lines, of at least `size` bytes if there are as many, with their ends. The
    /// last line of the text has perhaps none. `None` at the end of the text, and after an error.
    pub(super) fn next(&mut self, size: usize) -> Option<Vec<u8>> {
        let mut part = std::mem::take(&mut self.begun);
        while self.error.is_none() {
            let from = part.len();
            part.reserve(size);
            self.error = self.reader.by_ref().take(size as u64).read_to_end(&mut part).err();
            if let Some(end) = part[from..].iter().rposition(|&byte| byte == b'\n') {
                self.begun = part.split_off(from + end + 1);
                return Some(part);
            }
            if part.len() == from {
                break;
            }
            // The rest of a line that is too long is of no use.
            part.truncate(LINE_LEN_MAX + 1);
        }
        (!part.is_empty()).then_some(part)
    }
}

/// Recognises a file that only another program can read. Returns what the file is, and the command
/// that turns it into text.
fn other_format(head: &[u8]) -> Option<(&'static str, &'static str)> {
    match head {
        [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Some((
            "a recording of perf on a machine with another byte order",
            "perf script --ns --header --show-lost-events -i",
        )),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(("compressed with zstd", "zstd -dc")),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(("compressed with xz", "xz -dc")),
        [b'B', b'Z', b'h', ..] => Some(("compressed with bzip2", "bzip2 -dc")),
        _ if head.get(257..262) == Some(b"ustar") => {
            Some(("a tar archive of several files", "tar -xOf"))
        }
        _ => None,
    }
}
