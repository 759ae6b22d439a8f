//! Reads a `trace.dat` of trace-cmd, of version 6 or 7, plain or compressed with zlib or zstd.
//!
//! The manual pages `trace-cmd.dat.v6(5)` and `trace-cmd.dat.v7(5)` describe the format. The file
//! has the format of each event, the names of functions and threads, and for each CPU the pages of
//! the kernel's ring buffer; see [`ring`].
//!
//! Guarantees: every position and size in the file is checked before it is used. What is damaged
//! inside a CPU's pages becomes a gap of this CPU; any other damage is an error.

mod file;
mod formats;
mod ring;

use super::event::EventKind;
use super::problem::Unusable;
use crate::list::List;
use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;
use std::ops::Range;

pub(super) use file::Source;
pub(super) use formats::{Field, Formats};
pub(super) use ring::{Entry, Found, Ring};

/// The first bytes of a file: the magic number, and the word before the version.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The word before the table of the CPUs' pages, in a file of version 6.
pub(crate) const FLYRECORD: &[u8] = b"flyrecord\0";
/// The word before the options of a file of version 6.
pub(crate) const OPTIONS: &[u8] = b"options  \0";

/// The options that are read, and written by `record`. An option is its number (16 bits), the size
/// of its data (32 bits), and the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(crate) enum OptionId {
    Done = 0,
    Statistics = 2,
    Buffer = 3,
    Clock = 4,
    Uname = 5,
    Cpus = 8,
}

/// The largest piece that is unpacked at once: no program writes pieces of this size.
const PIECE_MAX: u64 = 1 << 28;

/// What a file has, beside the pages of the CPUs.
#[derive(Debug, Default)]
pub(super) struct Dat {
    pub(super) formats: Formats,
    /// The content of `/proc/kallsyms`.
    pub(super) symbols: String,
    /// The lines of `saved_cmdlines`: the number and the name of a thread.
    pub(super) threads: Vec<u8>,
    pub(super) release: Option<String>,
    pub(super) cpus: Option<u16>,
    /// The counters of a CPU's buffer, one text for each CPU, each with the name of its instance.
    pub(super) statistics: Vec<(String, String)>,
    counted: String,
    pub(super) buffers: Vec<Buffer>,
}

/// What an instance (a set of buffers of its own) has recorded.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// The name of the instance; empty for the top instance.
    pub(super) name: String,
    pub(super) clock: String,
    pub(super) page_size: usize,
    /// For each CPU, its number, and where its pages are: in the file or in `unpacked`.
    pub(super) cpus: Vec<(u16, Range<usize>)>,
    pub(super) unpacked: Option<List<u8>>,
    /// Where the pages are: the number of the CPU, a position and a size in the file.
    pub(super) places: Vec<(u16, u64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    Plain,
    Zlib,
    Zstd,
}

/// A part of a file, from which numbers and texts are taken in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, size: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(size).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N as u64)?.try_into().ok()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes a text up to its null byte, which is dropped.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.take(end as u64)?;
        self.take(1)?;
        Some(text)
    }

    /// Takes these words; `None` if others come.
    fn word(&mut self, word: &[u8]) -> Option<()> {
        (self.take(word.len() as u64)? == word).then_some(())
    }

    pub(in crate::read) fn text_of_u32(&mut self) -> Option<&'a [u8]> {
        let size = self.u32()?;
        self.take(size.into())
    }

    fn text_of_u64(&mut self) -> Option<&'a [u8]> {
        let size = self.u64()?;
        self.take(size)
    }
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string()
}

/// Reads what a file has beside its pages. The error names the part that cannot be read.
pub(super) fn read(file: &Source<'_>) -> Result<Dat, Unusable> {
    // Formats and names come first, and take some megabytes.
    const BEGIN_MAX: u64 = 32 << 20;
    let damaged = |what: &'static str| Unusable::Damaged { form: "trace.dat", what };
    let begin = file.bytes(0, file.len().min(BEGIN_MAX)).unwrap_or_default();
    let mut head = Bytes(&begin);
    let version = version(&mut head).ok_or(damaged("beginning"))?;
    if head.take(2) != Some(&[0, 8]) {
        return Err(Unusable::ForeignDat);
    }
    let page_size = head.u32().ok_or(damaged("size of a page"))? as usize;
    let mut dat = Dat::default();
    match version {
        b"6" => dat.version_6(file, head, page_size).map_err(damaged)?,
        b"7" => dat.version_7(file, head).map_err(damaged)?,
        other => return Err(Unusable::DatVersion { version: lossy(other) }),
    }
    Ok(dat)
}

fn version<'a>(head: &mut Bytes<'a>) -> Option<&'a [u8]> {
    head.word(MAGIC)?;
    head.text()
}

/// Reads the formats and names in a `perf.data`: the same as those of version 6, behind a version
/// of their own. The error names the part that cannot be read.
pub(super) fn tracing_data(bytes: &[u8]) -> Result<Dat, &'static str> {
    let mut head = Bytes(bytes);
    let mut dat = Dat::default();
    if version(&mut head) != Some(b"0.6") || head.take(2) != Some(&[0, 8]) || head.u32().is_none() {
        return Err("beginning of the formats");
    }
    dat.formats_and_names(&mut head)?;
    Ok(dat)
}

impl Dat {
    fn version_6(
        &mut self,
        file: &Source<'_>,
        mut head: Bytes<'_>,
        page_size: usize,
    ) -> Result<(), &'static str> {
        self.formats_and_names(&mut head)?;
        let cpus = head.u32().ok_or("number of CPUs")?;
        let mut top = Buffer { page_size, ..Buffer::default() };
        let mut instances = Vec::new();
        if head.0.starts_with(OPTIONS) {
            head.word(OPTIONS).ok_or("options")?;
            loop {
                let id = head.u16().ok_or("options")?;
                if id == OptionId::Done as u16 {
                    break;
                }
                let data = head.text_of_u32().ok_or("options")?;
                if id == OptionId::Buffer as u16 {
                    let mut data = Bytes(data);
                    instances.push(data.u64().zip(data.text()).ok_or("options")?);
                } else if let Some(clock) = self.option(id, data) {
                    top.clock = clock;
                }
            }
        }
        top.places = table(&mut head, cpus).ok_or("table of CPUs")?;
        self.buffers.push(top);
        for (at, name) in instances {
            let size = FLYRECORD.len() as u64 + 16 * u64::from(cpus);
            let places = file.bytes(at, size).and_then(|it| table(&mut Bytes(&it), cpus));
            let (name, places) = (lossy(name), places.ok_or("table of CPUs")?);
            self.buffers.push(Buffer { name, page_size, places, ..Buffer::default() });
        }
        let load = |buffer: &mut Buffer| buffer.load(file, Packing::Plain);
        self.buffers.iter_mut().try_for_each(load).ok_or("table of CPUs")
    }

    fn formats_and_names(&mut self, head: &mut Bytes<'_>) -> Result<(), &'static str> {
        self.header_info(head).ok_or("format of a page")?;
        self.ftrace_events(head).ok_or("formats of ftrace's events")?;
        self.events(head).ok_or("formats of events")?;
        self.symbols = lossy(head.text_of_u32().ok_or("names of functions")?);
        head.text_of_u32().ok_or("formats of trace_printk")?;
        self.threads = head.text_of_u64().ok_or("names of threads")?.to_vec();
        Ok(())
    }

    fn version_7(&mut self, file: &Source<'_>, mut head: Bytes<'_>) -> Result<(), &'static str> {
        let packing = match head.text().ok_or("kind of compression")? {
            b"none" => Packing::Plain,
            b"zlib" => Packing::Zlib,
            b"zstd" => Packing::Zstd,
            _ => return Err("kind of compression, which is neither zlib nor zstd"),
        };
        head.text().ok_or("version of the compression")?;
        // trace-cmd writes it last.
        let mut next = head.u64().filter(|at| *at > 0).ok_or("place of the options")?;
        // Each options section names the next one. A damaged file could name one twice.
        const SECTIONS_MAX: u32 = 1_000;
        for _ in 0..SECTIONS_MAX {
            if next == 0 {
                return Ok(());
            }
            let options = section(file, next, packing).ok_or("options")?;
            let mut options = Bytes(&options);
            next = 0;
            while let Some(id) = options.u16() {
                let data = options.text_of_u32().ok_or("options")?;
                let place = || Bytes(data).u64();
                match id {
                    0 => {
                        next = place().ok_or("options")?;
                        break;
                    }
                    3 => self.buffers.push(buffer(file, data, packing).ok_or("pages of a CPU")?),
                    16..=21 => {
                        let part = place().and_then(|at| section(file, at, packing));
                        self.part(id, &part.ok_or("a section")?).ok_or("a section")?;
                    }
                    _ => drop(self.option(id, data)),
                }
            }
        }
        Err("options")
    }

    /// Reads a section of a file of version 7.
    fn part(&mut self, id: u16, bytes: &[u8]) -> Option<()> {
        let mut bytes = Bytes(bytes);
        match id {
            16 => self.header_info(&mut bytes)?,
            17 => self.ftrace_events(&mut bytes)?,
            18 => self.events(&mut bytes)?,
            19 => self.symbols = lossy(bytes.text_of_u32()?),
            21 => self.threads = bytes.text_of_u64()?.to_vec(),
            _ => {}
        }
        Some(())
    }

    /// Reads an option that does not depend on the version. Returns the clock, if it is that.
    fn option(&mut self, id: u16, data: &[u8]) -> Option<String> {
        let text = lossy(data);
        if id == OptionId::Clock as u16 {
            // The clock in use is in brackets.
            let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            return chosen.map(|(clock, _)| clock.to_string());
        } else if id == OptionId::Uname as u16 {
            self.release = text.split(' ').nth(2).map(ToString::to_string);
        } else if id == OptionId::Cpus as u16 {
            let cpus = Bytes(data).u32().and_then(|cpus| u16::try_from(cpus).ok());
            self.cpus = cpus.filter(|cpus| *cpus > 0);
        } else if id == OptionId::Statistics as u16 {
            // Those of other instances come behind headings with their names.
            match text.trim().strip_prefix("Buffer: ") {
                Some(name) => self.counted = name.to_string(),
                None => self.statistics.push((self.counted.clone(), text)),
            }
        }
        None
    }

    fn header_info(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        bytes.word(b"header_page\0")?;
        self.formats.page(bytes.text_of_u64()?)?;
        bytes.word(b"header_event\0")?;
        bytes.text_of_u64().map(drop)
    }

    /// Skips the formats of events that tracers write, none of which is about timers.
    fn ftrace_events(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        for _ in 0..bytes.u32()? {
            self.formats.event(bytes.text_of_u64()?, |_| None)?;
        }
        Some(())
    }

    fn events(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        for _ in 0..bytes.u32()? {
            bytes.text()?;
            for _ in 0..bytes.u32()? {
                self.formats.event(bytes.text_of_u64()?, EventKind::from_name)?;
            }
        }
        Some(())
    }
}

/// Reads a section of a file of version 7: its content without its header, unpacked.
fn section(file: &Source<'_>, at: u64, packing: Packing) -> Option<Vec<u8>> {
    const HEADER: u64 = 16;
    let header = file.bytes(at, HEADER)?;
    let mut header = Bytes(&header);
    header.u16()?;
    let is_packed = header.u16()? & 1 != 0;
    header.u32()?;
    let content = file.bytes(at.checked_add(HEADER)?, header.u64()?)?;
    if is_packed { piece(&mut Bytes(&content), packing) } else { Some(content) }
}

/// Unpacks a piece: the size of the packed data, that of the unpacked data, and the packed data.
fn piece(bytes: &mut Bytes<'_>, packing: Packing) -> Option<Vec<u8>> {
    let (packed, unpacked) = (bytes.u32()?, u64::from(bytes.u32()?));
    let packed = bytes.take(packed.into())?;
    if unpacked > PIECE_MAX {
        return None;
    }
    let mut content = Vec::new();
    match packing {
        Packing::Plain => content.extend_from_slice(packed),
        Packing::Zlib => {
            ZlibDecoder::new(packed).take(unpacked).read_to_end(&mut content).ok()?;
        }
        Packing::Zstd => {
            let decoder = StreamingDecoder::new(packed).ok()?;
            decoder.take(unpacked).read_to_end(&mut content).ok()?;
        }
    }
    (content.len() as u64 == unpacked).then_some(content)
}

/// Reads where the pages of each CPU are, in a file of version 6.
fn table(head: &mut Bytes<'_>, cpus: u32) -> Option<Vec<(u16, u64, u64)>> {
    head.word(FLYRECORD)?;
    (0..cpus).map(|cpu| Some((u16::try_from(cpu).ok()?, head.u64()?, head.u64()?))).collect()
}

/// Reads the option of an instance of a file of version 7, and its pages.
fn buffer(file: &Source<'_>, data: &[u8], packing: Packing) -> Option<Buffer> {
    let mut data = Bytes(data);
    let at = data.u64()?;
    let mut buffer = Buffer {
        name: lossy(data.text()?),
        clock: lossy(data.text()?),
        page_size: data.u32()? as usize,
        ..Buffer::default()
    };
    for _ in 0..data.u32()? {
        let cpu = u16::try_from(data.u32()?).ok()?;
        buffer.places.push((cpu, data.u64()?, data.u64()?));
    }
    let flags = Bytes(&file.bytes(at.checked_add(2)?, 2)?).u16()?;
    buffer.load(file, if flags & 1 != 0 { packing } else { Packing::Plain })?;
    Some(buffer)
}

impl Buffer {
    /// Returns whether the file ends before the pages of the CPU at this place in the list do.
    pub(in crate::read) fn is_cut(&self, at: usize) -> bool {
        self.unpacked.is_none() && self.places[at].2 > self.cpus[at].1.len() as u64
    }

    /// Finds the pages of all CPUs. Packed pages are in pieces, whose number comes first.
    fn load(&mut self, file: &Source<'_>, packing: Packing) -> Option<()> {
        if packing != Packing::Plain {
            self.unpacked = Some(List::default());
        }
        for &(cpu, at, size) in &self.places {
            let mut at = at.min(file.len());
            let pages = match &mut self.unpacked {
                // A file that was cut off has the first pages.
                None => at as usize..(at + (file.len() - at).min(size)) as usize,
                Some(unpacked) => {
                    let from = unpacked.len();
                    // The size does not count the word with the number of pieces.
                    let pieces = if size > 0 { Bytes(&file.bytes(at, 4)?).u32()? } else { 0 };
                    at += 4;
                    for _ in 0..pieces {
                        let packed = Bytes(&file.bytes(at, 4)?).u32()?;
                        let bytes = file.bytes(at, 8 + u64::from(packed))?;
                        unpacked.extend_from_slice(&piece(&mut Bytes(&bytes), packing)?);
                        at += bytes.len() as u64;
                    }
                    from..unpacked.len()
                }
            };
            self.cpus.push((cpu, pages));
        }
        Some(())
    }
}
