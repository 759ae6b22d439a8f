//! Opens a trace as lines of text. Gzip and binary files are recognised by their first bytes.
//!
//! One buffer holds one line at a time, so a trace of any size needs the memory of its longest
//! line. If reading fails, the lines before the failure are still returned.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::problem::Unusable;
use super::{dat, perf};

/// No event prints a line this long. Longer lines are skipped, so that a file without line ends
/// does not fill the memory.
const LINE_LEN_MAX: u64 = 64 * 1024;

/// A trace: a text, or the whole file of a recording.
pub(super) enum Input<'a> {
    Text(Lines<'a>),
    Dat(Vec<u8>),
    Perf(Vec<u8>),
}

pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    /// The last line, if it has no line end: it was perhaps cut off anywhere, so it is not used.
    Cut,
    /// More than [`LINE_LEN_MAX`] bytes, which were skipped.
    TooLong,
}

pub(super) struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
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
    let whole = BufReader::with_capacity(LINE_LEN_MAX as usize, Cursor::new(head).chain(input));
    let mut reader: Box<dyn BufRead + 'a> = if is_gzip {
        Box::new(BufReader::with_capacity(LINE_LEN_MAX as usize, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    };
    // Ignore an error here: the first read of a line fails in the same way, and reports it.
    let head = reader.fill_buf().unwrap_or_default();
    let (is_dat, is_perf) = (head.starts_with(dat::MAGIC), head.starts_with(perf::MAGIC));
    if is_dat || is_perf {
        let mut file = Vec::new();
        reader.read_to_end(&mut file).map_err(Unusable::Read)?;
        return Ok(if is_dat { Input::Dat(file) } else { Input::Perf(file) });
    }
    if let Some((what, with)) = other_format(head) {
        return Err(Unusable::Convert { what, with });
    }
    Ok(Input::Text(Lines { reader, buffer: Vec::new(), is_gzip, error: None }))
}

impl Lines<'_> {
    /// Returns the next line without its end. `None` at the end of the text, and after an error.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        if self.error.is_some() {
            return None;
        }
        self.buffer.clear();
        let mut limited = self.reader.by_ref().take(LINE_LEN_MAX);
        match limited.read_until(b'\n', &mut self.buffer) {
            Err(error) => self.error = Some(error),
            Ok(0) => return None,
            Ok(_) => {}
        }
        if self.buffer.pop_if(|last| *last == b'\n').is_some() {
            self.buffer.pop_if(|last| *last == b'\r');
            return Some(Line::Whole(&self.buffer));
        }
        if self.buffer.len() as u64 == LINE_LEN_MAX && self.error.is_none() {
            self.error = self.reader.skip_until(b'\n').err();
            return Some(Line::TooLong);
        }
        (!self.buffer.is_empty()).then_some(Line::Cut)
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
