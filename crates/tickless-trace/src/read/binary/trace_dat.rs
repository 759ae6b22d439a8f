//! `trace.dat`, which trace-cmd records: versions 6 and 7.
//!
//! Both have the formats of events, the kernel's symbols, the names of tasks, and for each CPU the
//! pages of its ring buffer. Version 6 has them in this order; version 7 in sections, which a list
//! of options points to and which may be compressed.

use super::bytes::{Bytes, from};
use super::decode::Decoder;
use super::head::{self, Head, MAGIC};
use super::packed::{Compression, Pages, unpacked};
use super::page::Page;
use super::symbols::Symbols;
use crate::read::Trace;
use crate::read::header::Format;
use crate::read::prefix;
use crate::read::problem::Unusable;
use crate::read::reader::Reader;
use core::ops::Range;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use tickless_core::time::{CpuId, Ns};

pub(in crate::read) fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

pub(in crate::read) fn read(path: &str, file: &[u8]) -> Result<Trace, Unusable> {
    let mut file = File { bytes: file, ..File::default() };
    let Some(Contents { decoder, symbols, tasks, pages, kernel, clock, .. }) = file.contents()
    else {
        return Err(match file.unsupported {
            Some(what) => Unusable::Convert { what, with: "trace-cmd report -i" },
            None => Unusable::DamagedBinary("trace.dat"),
        });
    };
    let mut reader = Reader::new(Format::TraceCmd, symbols);
    reader.header.kernel = kernel;
    // Leave out `local`, the scheduler's clock: it is the default, and text does not name it
    // either.
    reader.header.clock = clock.filter(|clock| clock != "local");
    let cpus: BTreeSet<u16> = pages.iter().map(|(cpu, _)| cpu.0).collect();
    reader.header.cpus = u16::try_from(cpus.len()).ok();
    let mut buffers: Vec<Buffer> = pages
        .into_iter()
        .map(|(cpu, pages)| Buffer { cpu, pages, page: None, event: 0..0 })
        .collect();
    // The next event of each buffer, by time. Events of equal time come by CPU, as trace-cmd prints
    // them.
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (at, buffer) in buffers.iter_mut().enumerate() {
        next.extend(buffer.advance(&mut reader).map(|time| Reverse((time, at))));
    }
    while let Some(Reverse((time, at))) = next.pop() {
        let buffer = &mut buffers[at];
        let event = &buffer.pages.current()[buffer.event.clone()];
        reader.binary_event(Ns(time), buffer.cpu, event, &decoder);
        next.extend(buffer.advance(&mut reader).map(|time| Reverse((time, at))));
    }
    reader.finish_binary(path, tasks)
}

/// The pages of a CPU's buffer, and the event in them that comes next.
struct Buffer<'a> {
    cpu: CpuId,
    pages: Pages<'a>,
    page: Option<Page>,
    event: Range<usize>,
}

impl Buffer<'_> {
    fn advance(&mut self, reader: &mut Reader) -> Option<u64> {
        loop {
            let bytes = self.pages.current();
            if let Some((time, event)) = self.page.as_mut().and_then(|page| page.next(bytes)) {
                self.event = event;
                return Some(time);
            }
            if !self.pages.advance() {
                return None;
            }
            let page = Page::new(self.pages.current())?;
            if let Some(lost) = page.lost() {
                reader.lose(Some(lost));
            }
            self.page = Some(page);
        }
    }
}

#[derive(Default)]
struct Contents<'a> {
    decoder: Decoder,
    symbols: Symbols,
    tasks: HashMap<u32, Box<str>>,
    kernel: Option<String>,
    clock: Option<String>,
    buffers: Vec<Vec<u8>>,
    pages: Vec<(CpuId, Pages<'a>)>,
}

/// A trace.dat file. Its methods return `None` if the file ends too early, or if a number in it is
/// wrong.
#[derive(Default)]
struct File<'a> {
    bytes: &'a [u8],
    page_size: usize,
    compression: Compression,
    unsupported: Option<&'static str>,
}

mod option {
    pub(super) const DONE: u16 = 0;
    pub(super) const BUFFER: u16 = 3;
    pub(super) const TRACE_CLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    pub(super) const FTRACE_EVENTS: u16 = 17;
    pub(super) const EVENT_FORMATS: u16 = 18;
    pub(super) const KALLSYMS: u16 = 19;
    pub(super) const CMDLINES: u16 = 21;
}

/// The bit in a section's flags that marks compressed contents.
const COMPRESSED: u16 = 1;

/// The sizes of pages that are accepted. A page must have room for its header; the largest that
/// kernels make have 1 MB.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 32..=1 << 24;

impl<'a> File<'a> {
    fn unsupported<T>(&mut self, what: &'static str) -> Option<T> {
        self.unsupported = Some(what);
        None
    }

    fn contents(&mut self) -> Option<Contents<'a>> {
        let mut bytes = Bytes(self.bytes);
        let start = head::start(&mut bytes)?;
        if start.is_big_endian {
            return self.unsupported("recorded by trace-cmd on a big-endian machine");
        }
        self.page_size = Some(start.page_size).filter(|size| PAGE_SIZES.contains(size))?;
        match start.version {
            b"6" => self.version_6(bytes),
            b"7" => self.version_7(bytes),
            _ => self.unsupported("recorded by a trace-cmd of another version than 6 or 7"),
        }
    }

    fn version_6(&mut self, bytes: Bytes<'a>) -> Option<Contents<'a>> {
        let Head { decoder, symbols, tasks, mut rest } = head::read(bytes)?;
        let count = rest.u32()?;
        let mut contents = Contents { decoder, symbols, tasks, ..Contents::default() };
        options_6(&mut rest, &mut contents)?;
        contents.pages = self.flyrecord(rest, count)?;
        for instance in std::mem::take(&mut contents.buffers) {
            // In a file that was cut, the buffer of an instance may be missing.
            let offset = Bytes(&instance).u64();
            let Some(mut rest) = offset.and_then(|offset| from(self.bytes, offset)) else {
                continue;
            };
            if options_6(&mut rest, &mut Contents::default()).is_some() {
                contents.pages.extend(self.flyrecord(rest, count).unwrap_or_default());
            }
        }
        Some(contents)
    }

    fn flyrecord(&mut self, mut rest: Bytes<'a>, count: u32) -> Option<Vec<(CpuId, Pages<'a>)>> {
        if rest.take(10)? != b"flyrecord\0" {
            return self.unsupported("recorded by trace-cmd as latency text");
        }
        let mut pages = Vec::new();
        for cpu in 0..count {
            let (offset, size) = (rest.u64()?, rest.u64()?);
            let part = self.part(offset, size, 0);
            pages.push((prefix::cpu_id(cpu.into())?, Pages::plain(part, self.page_size)));
        }
        Some(pages)
    }

    fn version_7(&mut self, mut bytes: Bytes<'a>) -> Option<Contents<'a>> {
        self.compression = match bytes.string()? {
            b"none" | b"" => Compression::None,
            b"zlib" => Compression::Zlib,
            b"zstd" => Compression::Zstd,
            _ => return self.unsupported("recorded by trace-cmd with an unknown compression"),
        };
        let _version_of_compressor = bytes.string()?;
        let mut contents = Contents::default();
        let mut at = bytes.u64()?;
        // Each list of options points to the next one. In a damaged file they may form a circle, so
        // follow no more lists than the file has room for.
        let mut lists_left = self.bytes.len() / 8;
        while at != 0 && lists_left > 0 {
            lists_left -= 1;
            at = self.options_7(at, &mut contents)?;
        }
        let mut clock = None;
        for buffer in std::mem::take(&mut contents.buffers) {
            let name = self.buffer_7(Bytes(&buffer), &mut contents.pages)?;
            clock.get_or_insert(name);
        }
        contents.clock = contents.clock.or(Some(clock?));
        Some(contents)
    }

    /// Reads a list of options. Returns the offset of the next list, or 0 if this is the last one.
    fn options_7(&self, offset: u64, contents: &mut Contents<'_>) -> Option<u64> {
        let options = self.section(offset)?;
        let mut options = Bytes(&options);
        while let Some(id) = options.u16() {
            let data = options.sized_u32()?;
            let section = || self.section(Bytes(data).u64()?);
            match id {
                option::DONE => return Bytes(data).u64(),
                option::FTRACE_EVENTS => {
                    head::ftrace_formats(&mut Bytes(&section()?), &mut contents.decoder)?;
                }
                option::EVENT_FORMATS => {
                    head::event_formats(&mut Bytes(&section()?), &mut contents.decoder)?;
                }
                option::KALLSYMS => {
                    let symbols = section()?;
                    let text = Bytes(&symbols).sized_u32().unwrap_or_default();
                    contents.symbols = head::symbols_of(text);
                }
                option::CMDLINES => {
                    let tasks = section()?;
                    contents.tasks = head::tasks_of(Bytes(&tasks).sized_u64().unwrap_or_default());
                }
                _ => contents.option(id, data),
            }
        }
        Some(0)
    }

    /// Adds the pages of a ring buffer in a file of version 7, and returns the name of its clock.
    fn buffer_7(
        &self,
        mut option: Bytes<'_>,
        pages: &mut Vec<(CpuId, Pages<'a>)>,
    ) -> Option<String> {
        let flags = self.section_flags(option.u64()?)?;
        let _name = option.string()?;
        let clock = String::from_utf8_lossy(option.string()?).into_owned();
        let size = option.u32()? as usize;
        let page_size = if PAGE_SIZES.contains(&size) { size } else { self.page_size };
        for _ in 0..option.u32()? {
            let cpu = prefix::cpu_id(option.u32()?.into())?;
            let (offset, size) = (option.u64()?, option.u64()?);
            let of_cpu = match self.compression {
                Compression::Zlib | Compression::Zstd if flags & COMPRESSED != 0 => {
                    // `size` does not include the 4 bytes that hold the number of chunks.
                    let part = self.part(offset, size, 4);
                    Pages::packed(part, page_size, self.compression)
                }
                _ => Pages::plain(self.part(offset, size, 0), page_size),
            };
            pages.push((cpu, of_cpu));
        }
        Some(clock)
    }

    /// Returns `size + more` bytes of the file from `offset` on, or fewer if the file was cut.
    fn part(&self, offset: u64, size: u64, more: usize) -> &'a [u8] {
        let data = from(self.bytes, offset).map_or(&[][..], |at| at.0);
        let size = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(more);
        &data[..size.min(data.len())]
    }

    fn section_flags(&self, offset: u64) -> Option<u16> {
        let mut bytes = from(self.bytes, offset)?;
        let _id = bytes.u16()?;
        bytes.u16()
    }

    fn section(&self, offset: u64) -> Option<Cow<'a, [u8]>> {
        let flags = self.section_flags(offset)?;
        let mut bytes = from(self.bytes, offset + 4)?;
        let _description = bytes.u32()?;
        let data = bytes.sized_u64()?;
        if flags & COMPRESSED == 0 {
            return Some(Cow::Borrowed(data));
        }
        unpacked(&mut Bytes(data), self.compression).map(Cow::Owned)
    }
}

/// Reads the options in front of a ring buffer in a file of version 6, if there are any.
fn options_6(rest: &mut Bytes<'_>, contents: &mut Contents<'_>) -> Option<()> {
    if !rest.0.starts_with(b"options  \0") {
        return Some(());
    }
    rest.take(10)?;
    loop {
        match rest.u16()? {
            option::DONE => return Some(()),
            id => contents.option(id, rest.sized_u32()?),
        }
    }
}

impl Contents<'_> {
    fn option(&mut self, id: u16, data: &[u8]) {
        let text = || String::from_utf8_lossy(data);
        match id {
            // `Linux host 6.18.0 #1 SMP ...`
            option::UNAME => {
                let release = text().split(' ').nth(2).map(|release| release.to_string());
                self.kernel = release.map(|release| release.trim_end_matches('\0').to_string());
            }
            // `local global [mono]`
            option::TRACE_CLOCK => {
                let text = text();
                let chosen = text.split_once('[').and_then(|(_, chosen)| chosen.split_once(']'));
                self.clock = chosen.map(|(clock, _)| clock.to_string());
            }
            option::BUFFER => self.buffers.push(data.to_vec()),
            _ => {}
        }
    }
}
