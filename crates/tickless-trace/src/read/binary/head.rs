//! The formats and symbols that trace.dat (up to version 6) and perf.data begin with.

use super::bytes::Bytes;
use super::decode::Decoder;
use super::symbols::Symbols;
use std::collections::HashMap;

pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// What a head says, and what is behind it.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) decoder: Decoder,
    pub(super) tasks: HashMap<u32, Box<str>>,
    pub(super) page_size: usize,
    pub(super) rest: Bytes<'a>,
}

/// The very first bytes, which all versions share.
#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) version: &'a [u8],
    pub(super) is_big_endian: bool,
    pub(super) page_size: usize,
}

/// Reads magic, version, byte order, word size and page size.
pub(super) fn start<'a>(bytes: &mut Bytes<'a>) -> Option<Start<'a>> {
    bytes.take(MAGIC.len()).filter(|magic| *magic == MAGIC)?;
    let version = bytes.string()?;
    let is_big_endian = bytes.u8()? != 0;
    let _word_size = bytes.u8()?;
    Some(Start { version, is_big_endian, page_size: bytes.u32()? as usize })
}

/// Reads what follows [`start`], up to the names of tasks where there are any.
pub(super) fn read<'a>(start: &Start<'_>, mut bytes: Bytes<'a>) -> Option<Head<'a>> {
    let mut formats = Vec::new();
    header_pages(&mut bytes)?;
    ftrace_formats(&mut bytes, &mut formats)?;
    event_formats(&mut bytes, &mut formats)?;
    let symbols = sized_u32(&mut bytes)?;
    let _printk = sized_u32(&mut bytes)?;
    // Since version 6 of both.
    let tasks = sized_u64(&mut bytes).unwrap_or_default();
    let mut decoder = Decoder::new(symbols_of(symbols));
    formats.iter().for_each(|format| decoder.add_format(&String::from_utf8_lossy(format)));
    Some(Head { decoder, tasks: tasks_of(tasks), page_size: start.page_size, rest: bytes })
}

/// `header_page` and `header_event`, which have said the same since 2009.
pub(super) fn header_pages(bytes: &mut Bytes<'_>) -> Option<()> {
    for name in [&b"header_page"[..], b"header_event"] {
        bytes.string().filter(|found| *found == name)?;
        sized_u64(bytes)?;
    }
    Some(())
}

pub(super) fn ftrace_formats<'a>(bytes: &mut Bytes<'a>, to: &mut Vec<&'a [u8]>) -> Option<()> {
    for _ in 0..bytes.u32()? {
        to.push(sized_u64(bytes)?);
    }
    Some(())
}

pub(super) fn event_formats<'a>(bytes: &mut Bytes<'a>, to: &mut Vec<&'a [u8]>) -> Option<()> {
    for _ in 0..bytes.u32()? {
        let _system = bytes.string()?;
        for _ in 0..bytes.u32()? {
            to.push(sized_u64(bytes)?);
        }
    }
    Some(())
}

pub(super) fn sized_u32<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let length = bytes.u32()?;
    bytes.take_u64(length.into())
}

pub(super) fn sized_u64<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let length = bytes.u64()?;
    bytes.take_u64(length)
}

pub(super) fn symbols_of(text: &[u8]) -> Symbols {
    Symbols::parse(String::from_utf8_lossy(text).into_owned())
}

/// Lines of `7 name`.
pub(super) fn tasks_of(text: &[u8]) -> HashMap<u32, Box<str>> {
    let text = String::from_utf8_lossy(text);
    let task = |line: &str| {
        let (pid, name) = line.trim_end_matches('\0').split_once(' ')?;
        Some((pid.parse().ok()?, name.into()))
    };
    text.lines().filter_map(task).collect()
}
