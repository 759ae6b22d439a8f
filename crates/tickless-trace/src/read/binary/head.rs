//! Reads the formats of events and the symbols at the beginning of trace.dat (up to version 6) and
//! perf.data.

use super::bytes::Bytes;
use super::decode::Decoder;
use super::symbols::Symbols;
use std::collections::HashMap;

pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) decoder: Decoder,
    pub(super) symbols: Symbols,
    pub(super) tasks: HashMap<u32, Box<str>>,
    pub(super) rest: Bytes<'a>,
}

#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) version: &'a [u8],
    pub(super) is_big_endian: bool,
    pub(super) page_size: usize,
}

/// Reads the first bytes of a file: magic, version, byte order, word size and page size.
pub(super) fn start<'a>(bytes: &mut Bytes<'a>) -> Option<Start<'a>> {
    bytes.take(MAGIC.len()).filter(|magic| *magic == MAGIC)?;
    let version = bytes.string()?;
    let is_big_endian = bytes.u8()? != 0;
    let _word_size = bytes.u8()?;
    Some(Start { version, is_big_endian, page_size: bytes.u32()? as usize })
}

/// Reads what follows [`start`]: the formats of events, the symbols and the names of tasks.
pub(super) fn read(mut bytes: Bytes<'_>) -> Option<Head<'_>> {
    let mut decoder = Decoder::default();
    // Skip the formats of page and event headers, which have not changed since 2009.
    for name in [&b"header_page"[..], b"header_event"] {
        bytes.string().filter(|found| *found == name)?;
        bytes.sized_u64()?;
    }
    ftrace_formats(&mut bytes, &mut decoder)?;
    event_formats(&mut bytes, &mut decoder)?;
    let symbols = symbols_of(bytes.sized_u32()?);
    let _printk = bytes.sized_u32()?;
    // Files before version 6 have no names of tasks.
    let tasks = tasks_of(bytes.sized_u64().unwrap_or_default());
    Some(Head { decoder, symbols, tasks, rest: bytes })
}

pub(super) fn ftrace_formats(bytes: &mut Bytes<'_>, decoder: &mut Decoder) -> Option<()> {
    for _ in 0..bytes.u32()? {
        decoder.add_format(&String::from_utf8_lossy(bytes.sized_u64()?));
    }
    Some(())
}

pub(super) fn event_formats(bytes: &mut Bytes<'_>, decoder: &mut Decoder) -> Option<()> {
    for _ in 0..bytes.u32()? {
        let _system = bytes.string()?;
        ftrace_formats(bytes, decoder)?;
    }
    Some(())
}

pub(super) fn symbols_of(text: &[u8]) -> Symbols {
    Symbols::parse(String::from_utf8_lossy(text).into_owned())
}

pub(super) fn tasks_of(text: &[u8]) -> HashMap<u32, Box<str>> {
    let text = String::from_utf8_lossy(text);
    let task = |line: &str| {
        let (pid, name) = line.trim_end_matches('\0').split_once(' ')?;
        Some((pid.parse().ok()?, name.into()))
    };
    text.lines().filter_map(task).collect()
}
