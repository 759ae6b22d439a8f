//! `trace.dat`, which trace-cmd records: versions 6 and 7.
//!
//! Both have the formats of events, the kernel's symbols, the names of tasks, and for each CPU the
//! pages of its ring buffer. Version 6 has them one after the other; version 7 in sections, which a
//! list of options points to and which may be compressed.

use super::bytes::{Bytes, from};
use super::decode::Decoder;
use super::head::{self, Head, MAGIC};
use super::packed::{Compression, Pages, unpacked};
use super::page::Place;
use crate::read::Trace;
use crate::read::header::Format;
use crate::read::problem::TraceError;
use crate::read::reader::Reader;
use core::ops::Range;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use tickless_core::time::{CpuId, Ns};

pub(in crate::read) fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// What is in a file, whichever version.
struct Contents<'a> {
    decoder: Decoder,
    tasks: HashMap<u32, Box<str>>,
    /// Of the top buffer and of each instance.
    pages: Vec<(CpuId, Pages<'a>)>,
    kernel: Option<String>,
    clock: Option<String>,
}

/// Why a file cannot be read.
enum Bad {
    /// It ends too early, or a number in it is wrong.
    Damaged,
    /// What it is, and the command that makes text of it.
    Unsupported(&'static str),
}

/// Where there is nothing, the file is damaged.
trait OrDamaged<T> {
    fn or_damaged(self) -> Result<T, Bad>;
}

impl<T> OrDamaged<T> for Option<T> {
    fn or_damaged(self) -> Result<T, Bad> {
        self.ok_or(Bad::Damaged)
    }
}

/// Reads the file. O(events).
pub(in crate::read) fn read(path: &str, file: &[u8]) -> Result<Trace, TraceError> {
    let contents = contents(file).map_err(|bad| match bad {
        Bad::Damaged => TraceError::DamagedBinary { path: path.to_owned(), what: "trace.dat" },
        Bad::Unsupported(what) => {
            TraceError::Convert { path: path.to_owned(), what, with: "trace-cmd report -i" }
        }
    })?;
    let Contents { mut decoder, tasks, pages, kernel, clock } = contents;
    let mut reader = Reader::of_binary(Format::TraceCmd);
    reader.header().kernel = kernel;
    // What is not told is the scheduler's clock; text does not tell either.
    reader.header().clock = clock.filter(|clock| clock != "local");
    let cpus: BTreeSet<u16> = pages.iter().map(|(cpu, _)| cpu.0).collect();
    reader.header().cpus = u16::try_from(cpus.len()).ok();
    let mut buffers: Vec<Buffer> = pages.into_iter().map(Buffer::new).collect();
    // By time; those of one moment by CPU, as trace-cmd prints them.
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (at, buffer) in buffers.iter_mut().enumerate() {
        next.extend(buffer.advance(&mut reader).map(|time| Reverse((time, at))));
    }
    while let Some(Reverse((time, at))) = next.pop() {
        let buffer = &mut buffers[at];
        reader.occurrence(Ns(time), buffer.cpu, buffer.event(), &mut decoder);
        next.extend(buffer.advance(&mut reader).map(|time| Reverse((time, at))));
    }
    reader.finish_binary(path, decoder, tasks)
}

/// A CPU's pages, of which events are taken one by one.
struct Buffer<'a> {
    cpu: CpuId,
    pages: Pages<'a>,
    next: Option<Place>,
    /// Where in the page the event is that was gone to.
    event: Range<usize>,
}

impl<'a> Buffer<'a> {
    fn new((cpu, pages): (CpuId, Pages<'a>)) -> Buffer<'a> {
        Buffer { cpu, pages, next: None, event: 0..0 }
    }

    fn event(&self) -> &[u8] {
        &self.pages.present()[self.event.clone()]
    }

    /// Goes to the next event, and returns its time.
    fn advance(&mut self, reader: &mut Reader) -> Option<u64> {
        loop {
            let page = self.pages.present();
            if let Some((time, event)) = self.next.as_mut().and_then(|next| next.advance(page)) {
                self.event = event;
                return Some(time);
            }
            if !self.pages.advance() {
                return None;
            }
            let (next, lost) = Place::first(self.pages.present())?;
            if let Some(lost) = lost {
                reader.lose(Some(lost));
            }
            self.next = Some(next);
        }
    }
}

fn contents(file: &[u8]) -> Result<Contents<'_>, Bad> {
    let mut bytes = Bytes(file);
    let start = head::start(&mut bytes).or_damaged()?;
    if start.is_big_endian {
        return Err(Bad::Unsupported("recorded by trace-cmd on a big-endian machine"));
    }
    // A page has room for its header; the largest that kernels make have 1 MB.
    if !(32..=1 << 24).contains(&start.page_size) {
        return Err(Bad::Damaged);
    }
    match start.version {
        b"6" => version_6(file, head::read(&start, bytes).or_damaged()?),
        b"7" => version_7(file, bytes, start.page_size),
        _ => Err(Bad::Unsupported("recorded by a trace-cmd of another version than 6 or 7")),
    }
}

fn version_6<'a>(file: &'a [u8], head: Head<'a>) -> Result<Contents<'a>, Bad> {
    let Head { decoder, tasks, page_size, mut rest } = head;
    let count = rest.u32().or_damaged()?;
    let top = Options::read(&mut rest).or_damaged()?;
    let mut pages = flyrecord(file, rest, count, page_size)?;
    for &instance in &top.instances {
        // What is cut off at the end of a file may be an instance.
        let Some(mut rest) = from(file, instance) else { continue };
        if Options::read(&mut rest).is_some() {
            pages.extend(flyrecord(file, rest, count, page_size).unwrap_or_default());
        }
    }
    Ok(Contents { decoder, tasks, pages, kernel: top.kernel, clock: top.clock })
}

/// The options in front of a buffer of version 6.
#[derive(Default)]
struct Options {
    kernel: Option<String>,
    clock: Option<String>,
    /// Where in the file the instances are.
    instances: Vec<u64>,
}

impl Options {
    /// Takes the options, if there are some. None if they are cut.
    fn read(rest: &mut Bytes<'_>) -> Option<Options> {
        let mut options = Options::default();
        if !rest.0.starts_with(b"options  \0") {
            return Some(options);
        }
        rest.take(10)?;
        loop {
            let id = rest.u16()?;
            if id == option::DONE {
                return Some(options);
            }
            let data = head::sized_u32(rest)?;
            match id {
                option::UNAME => options.kernel = release(data),
                option::TRACE_CLOCK => options.clock = chosen_clock(data),
                option::BUFFER => options.instances.extend(Bytes(data).u64()),
                _ => {}
            }
        }
    }
}

/// A buffer of version 6: where the pages of each CPU are.
fn flyrecord<'a>(
    file: &'a [u8],
    mut rest: Bytes<'a>,
    count: u32,
    page_size: usize,
) -> Result<CpuPages<'a>, Bad> {
    if rest.take(10).or_damaged()? != b"flyrecord\0" {
        return Err(Bad::Unsupported("recorded by trace-cmd as latency text"));
    }
    let mut pages = Vec::new();
    for cpu in 0..count {
        let (offset, size) = (rest.u64().or_damaged()?, rest.u64().or_damaged()?);
        let cpu = crate::read::prefix::cpu_id(cpu.into()).or_damaged()?;
        pages.push((cpu, Pages::plain(part(file, offset, size, 0), page_size)));
    }
    Ok(pages)
}

/// A part of the file. A file that was cut has less than that; what is there is used.
fn part(file: &[u8], offset: u64, size: u64, more: usize) -> &[u8] {
    let data = from(file, offset).map_or(&[][..], |at| at.0);
    let size = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(more);
    &data[..size.min(data.len())]
}

/// The numbers of options, in both versions.
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

fn version_7<'a>(
    file: &'a [u8],
    mut bytes: Bytes<'a>,
    page_size: usize,
) -> Result<Contents<'a>, Bad> {
    let compression = match bytes.string().or_damaged()? {
        b"none" | b"" => Compression::None,
        b"zlib" => Compression::Zlib,
        b"zstd" => Compression::Zstd,
        _ => return Err(Bad::Unsupported("recorded by trace-cmd with an unknown compression")),
    };
    let _version_of_compressor = bytes.string().or_damaged()?;
    let mut at = bytes.u64().or_damaged()?;
    let section = |offset: u64| section(file, offset, compression);
    let (mut kernel, mut clock) = (None, None);
    let mut formats = Vec::new();
    let (mut symbols, mut tasks) = (Cow::Borrowed(&[][..]), Cow::Borrowed(&[][..]));
    let mut buffers = Vec::new();
    // Lists of options point to the next one; as many as there could be in the file.
    for _ in 0..file.len() / 8 {
        let options = section(at)?;
        at = 0;
        let mut options = Bytes(&options);
        while let Some(id) = options.u16() {
            let data = head::sized_u32(&mut options).or_damaged()?;
            let offset = || Bytes(data).u64().or_damaged();
            match id {
                option::DONE => {
                    at = offset()?;
                    break;
                }
                option::UNAME => kernel = release(data),
                option::TRACE_CLOCK => clock = chosen_clock(data),
                option::FTRACE_EVENTS | option::EVENT_FORMATS => {
                    formats.push((id, section(offset()?)?));
                }
                option::KALLSYMS => symbols = section(offset()?)?,
                option::CMDLINES => tasks = section(offset()?)?,
                option::BUFFER => buffers.push(data.to_vec()),
                _ => {}
            }
        }
        if at == 0 {
            break;
        }
    }
    let symbols = head::sized_u32(&mut Bytes(&symbols)).unwrap_or(&[]);
    let mut decoder = Decoder::new(head::symbols_of(symbols));
    for (id, text) in &formats {
        let mut texts = Vec::new();
        let read = match *id {
            option::FTRACE_EVENTS => head::ftrace_formats(&mut Bytes(text), &mut texts),
            _ => head::event_formats(&mut Bytes(text), &mut texts),
        };
        read.or_damaged()?;
        texts.iter().for_each(|text| decoder.add_format(&String::from_utf8_lossy(text)));
    }
    let tasks = head::tasks_of(head::sized_u64(&mut Bytes(&tasks)).unwrap_or(&[]));
    let mut pages = Vec::new();
    let mut name = None;
    for buffer in &buffers {
        let of_buffer = buffer_of(file, buffer, page_size, compression)?;
        pages.extend(of_buffer.0);
        name = name.or(Some(of_buffer.1));
    }
    let clock = clock.or(Some(name.or_damaged()?));
    Ok(Contents { decoder, tasks, pages, kernel, clock })
}

type CpuPages<'a> = Vec<(CpuId, Pages<'a>)>;

/// A buffer's pages by CPU, and its clock.
fn buffer_of<'a>(
    file: &'a [u8],
    option: &[u8],
    page_size: usize,
    compression: Compression,
) -> Result<(CpuPages<'a>, String), Bad> {
    let mut option = Bytes(option);
    let section = option.u64().or_damaged()?;
    let is_compressed = section_flags(file, section).or_damaged()? & COMPRESSED != 0;
    let _name = option.string().or_damaged()?;
    let clock = String::from_utf8_lossy(option.string().or_damaged()?).into_owned();
    let size = option.u32().or_damaged()? as usize;
    let page_size = if (32..=1 << 24).contains(&size) { size } else { page_size };
    let mut pages = Vec::new();
    for _ in 0..option.u32().or_damaged()? {
        let cpu = option.u32().or_damaged()?;
        let cpu = crate::read::prefix::cpu_id(cpu.into()).or_damaged()?;
        let (offset, size) = (option.u64().or_damaged()?, option.u64().or_damaged()?);
        let of_cpu = match compression {
            Compression::Zlib | Compression::Zstd if is_compressed => {
                // The size is that of the chunks, without their number.
                Pages::packed(part(file, offset, size, 4), page_size, compression)
            }
            _ => Pages::plain(part(file, offset, size, 0), page_size),
        };
        pages.push((cpu, of_cpu));
    }
    Ok((pages, clock))
}

const COMPRESSED: u16 = 1;

fn section_flags(file: &[u8], offset: u64) -> Option<u16> {
    let mut bytes = from(file, offset)?;
    let _id = bytes.u16()?;
    bytes.u16()
}

/// A section's contents.
fn section(file: &[u8], offset: u64, compression: Compression) -> Result<Cow<'_, [u8]>, Bad> {
    let flags = section_flags(file, offset).or_damaged()?;
    let mut bytes = from(file, offset + 4).or_damaged()?;
    let _description = bytes.u32().or_damaged()?;
    let data = head::sized_u64(&mut bytes).or_damaged()?;
    if flags & COMPRESSED == 0 {
        return Ok(Cow::Borrowed(data));
    }
    let mut data = Bytes(data);
    unpacked(&mut data, compression).map(Cow::Owned).or_damaged()
}

/// `Linux host 6.18.0 #1 SMP ...`
fn release(uname: &[u8]) -> Option<String> {
    let uname = String::from_utf8_lossy(uname);
    uname.split(' ').nth(2).map(|release| release.trim_end_matches('\0').to_string())
}

/// `local global [mono]`
fn chosen_clock(clocks: &[u8]) -> Option<String> {
    let clocks = String::from_utf8_lossy(clocks);
    let (_, chosen) = clocks.split_once('[')?;
    chosen.split_once(']').map(|(chosen, _)| chosen.to_string())
}
