//! `trace.dat`, which trace-cmd records: versions 6 and 7.
//!
//! Both have the formats of events, the kernel's symbols, the names of tasks, and for each CPU the
//! pages of its ring buffer. Version 6 has them one after the other; version 7 in sections, which a
//! list of options points to and which may be compressed.

use super::bytes::{Bytes, from};
use super::decode::Decoder;
use super::head::{self, Head, MAGIC};
use super::page::Page;
use crate::read::Trace;
use crate::read::header::Format;
use crate::read::problem::TraceError;
use crate::read::reader::Reader;
use flate2::read::ZlibDecoder;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Read;
use tickless_core::time::{CpuId, Ns};

pub(in crate::read) fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// What is in a file, whichever version.
struct Contents<'a> {
    decoder: Decoder,
    tasks: HashMap<u32, Box<str>>,
    page_size: usize,
    cpus: Vec<(CpuId, Cow<'a, [u8]>)>,
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
    let Contents { mut decoder, tasks, page_size, cpus, kernel, clock } = contents;
    let mut reader = Reader::of_binary(Format::TraceCmd);
    reader.header().kernel = kernel;
    // What is not told is the scheduler's clock; text does not tell either.
    reader.header().clock = clock.filter(|clock| clock != "local");
    reader.header().cpus = u16::try_from(cpus.len()).ok();
    let mut buffers: Vec<Buffer> =
        cpus.iter().map(|(cpu, pages)| Buffer::new(*cpu, pages, page_size)).collect();
    // By time; those of one moment by CPU, as trace-cmd prints them.
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (at, buffer) in buffers.iter_mut().enumerate() {
        next.extend(buffer.advance(&mut reader).map(|time| Reverse((time, at))));
    }
    while let Some(Reverse((time, at))) = next.pop() {
        let buffer = &mut buffers[at];
        reader.occurrence(Ns(time), buffer.cpu, buffer.event, &mut decoder);
        next.extend(buffer.advance(&mut reader).map(|time| Reverse((time, at))));
    }
    reader.finish_binary(path, decoder, tasks)
}

/// A CPU's pages, of which events are taken one by one.
struct Buffer<'a> {
    cpu: CpuId,
    pages: std::slice::Chunks<'a, u8>,
    page: Option<Page<'a>>,
    event: &'a [u8],
}

impl<'a> Buffer<'a> {
    fn new(cpu: CpuId, pages: &'a [u8], page_size: usize) -> Buffer<'a> {
        Buffer { cpu, pages: pages.chunks(page_size), page: None, event: &[] }
    }

    /// Goes to the next event, and returns its time.
    fn advance(&mut self, reader: &mut Reader) -> Option<u64> {
        loop {
            if let Some((time, event)) = self.page.as_mut().and_then(Iterator::next) {
                self.event = event;
                return Some(time);
            }
            let page = Page::new(self.pages.next()?)?;
            if let Some(lost) = page.lost() {
                reader.lose(Some(lost));
            }
            self.page = Some(page);
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
    let (mut kernel, mut clock) = (None, None);
    let mut section = rest.take(10).or_damaged()?;
    if section == b"options  \0" {
        loop {
            let id = rest.u16().or_damaged()?;
            if id == option::DONE {
                break;
            }
            let data = head::sized_u32(&mut rest).or_damaged()?;
            match id {
                option::UNAME => kernel = release(data),
                option::TRACE_CLOCK => clock = chosen_clock(data),
                _ => {}
            }
        }
        section = rest.take(10).or_damaged()?;
    }
    if section != b"flyrecord\0" {
        return Err(Bad::Unsupported("recorded by trace-cmd as latency text"));
    }
    let mut cpus = Vec::new();
    for cpu in 0..count {
        let (offset, size) = (rest.u64().or_damaged()?, rest.u64().or_damaged()?);
        let cpu = crate::read::prefix::cpu_id(cpu.into()).or_damaged()?;
        // A file that was cut has less than that; what is there is used.
        let data = from(file, offset).map_or(&[][..], |at| at.0);
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(data.len());
        cpus.push((cpu, Cow::Borrowed(&data[..size])));
    }
    Ok(Contents { decoder, tasks, page_size, cpus, kernel, clock })
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

/// How sections are compressed.
#[derive(Clone, Copy)]
enum Compression {
    None,
    Zlib,
    Zstd,
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
    let mut buffer = None;
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
                // The first is the top buffer, or the only instance.
                option::BUFFER if buffer.is_none() => buffer = Some(data.to_vec()),
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
    let buffer = buffer.or_damaged()?;
    let (cpus, page_size, name) = buffer_of(file, &buffer, page_size, compression)?;
    let clock = clock.or(name);
    Ok(Contents { decoder, tasks, page_size, cpus, kernel, clock })
}

type Cpus<'a> = Vec<(CpuId, Cow<'a, [u8]>)>;

/// A buffer's pages by CPU, how long they are, and its clock.
fn buffer_of<'a>(
    file: &'a [u8],
    option: &[u8],
    page_size: usize,
    compression: Compression,
) -> Result<(Cpus<'a>, usize, Option<String>), Bad> {
    let mut option = Bytes(option);
    let section = option.u64().or_damaged()?;
    let is_compressed = section_flags(file, section).or_damaged()? & COMPRESSED != 0;
    let compression = if is_compressed { compression } else { Compression::None };
    let _name = option.string().or_damaged()?;
    let clock = String::from_utf8_lossy(option.string().or_damaged()?).into_owned();
    let size = option.u32().or_damaged()? as usize;
    let page_size = if (32..=1 << 24).contains(&size) { size } else { page_size };
    let mut cpus = Vec::new();
    for _ in 0..option.u32().or_damaged()? {
        let cpu = option.u32().or_damaged()?;
        let cpu = crate::read::prefix::cpu_id(cpu.into()).or_damaged()?;
        let (offset, size) = (option.u64().or_damaged()?, option.u64().or_damaged()?);
        let data = from(file, offset).map_or(&[][..], |at| at.0);
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(data.len());
        let pages = match compression {
            Compression::None => Cow::Borrowed(&data[..size]),
            // The size is that of the chunks, without their number.
            _ => Cow::Owned(chunks(&data[..data.len().min(size + 4)], compression)),
        };
        cpus.push((cpu, pages));
    }
    Ok((cpus, page_size, Some(clock)))
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

/// A CPU's data: how many chunks there are, then each. Those behind a damaged one are lost.
fn chunks(data: &[u8], compression: Compression) -> Vec<u8> {
    let mut bytes = Bytes(data);
    let count = bytes.u32().unwrap_or(0);
    let mut whole = Vec::new();
    for _ in 0..count {
        let Some(chunk) = unpacked(&mut bytes, compression) else { break };
        whole.extend(chunk);
    }
    whole
}

/// How long it is compressed, how long it was, and the data.
fn unpacked(bytes: &mut Bytes<'_>, compression: Compression) -> Option<Vec<u8>> {
    let (packed, length) = (bytes.u32()?, bytes.u32()?);
    let packed = bytes.take_u64(packed.into())?;
    let mut whole = Vec::new();
    let limit = u64::from(length);
    match compression {
        Compression::None => whole.extend(packed),
        Compression::Zlib => {
            ZlibDecoder::new(packed).take(limit).read_to_end(&mut whole).ok()?;
        }
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
            decoder.take(limit).read_to_end(&mut whole).ok()?;
        }
    }
    (whole.len() as u64 == limit).then_some(whole)
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
