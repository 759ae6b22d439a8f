//! A `trace.dat` of version 6 or 7 as the bytes before its pages, and its pages.

use flate2::write::ZlibEncoder;
use flate2::{Compression, read::ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{Read, Write};
use tickless_trace::read::binary::Page;

/// How chunks of pages are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packed {
    No,
    Zlib,
    Zstd,
}

/// The parts of a small file.
#[derive(Debug)]
pub struct Dat {
    /// The bytes other than pages, which stay.
    head: Vec<u8>,
    /// Where in `head` the offset of the section of pages is; version 7 has one.
    section: Option<usize>,
    /// Each CPU's pages, and where in `head` their offset and size are.
    cpus: Vec<(usize, Vec<u8>)>,
    page_size: usize,
    packed: Packed,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok()
}

/// Returns where the bytes behind the next zero begin.
fn behind_string(bytes: &[u8], at: usize) -> Option<usize> {
    Some(at + bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 1)
}

const MAGIC_LEN: usize = 10;
const BUFFER_OPTION: u16 = 3;
const SECTION_HEADER_LEN: usize = 16;
const IS_COMPRESSED: u16 = 1;
/// The number of pages that trace-cmd compresses together.
const PAGES_IN_CHUNK: usize = 10;

impl Dat {
    /// Splits a file; `None` if it is not a complete `trace.dat`.
    pub fn parse(file: &[u8]) -> Option<Dat> {
        // Byte order, word size and page size follow the version.
        let behind_start = behind_string(file, MAGIC_LEN)? + 6;
        let page_size = u32_at(file, behind_start - 4)?;
        match file.get(MAGIC_LEN)? {
            b'6' => Dat::version_6(file, page_size),
            b'7' => Dat::version_7(file, behind_start),
            _ => None,
        }
    }

    fn version_6(file: &[u8], page_size: usize) -> Option<Dat> {
        const WORD: &[u8] = b"flyrecord\0";
        let table = file.windows(WORD.len()).position(|word| word == WORD)? + WORD.len();
        // The table of offsets ends where the first CPU's pages begin, at the latest.
        let first = u64_at(file, table)?;
        let (mut cpus, mut at) = (Vec::new(), table);
        while at + 16 <= first {
            let (place, size) = (u64_at(file, at)?, u64_at(file, at + 8)?);
            if place < first || size == 0 {
                break;
            }
            cpus.push((at, file.get(place..place + size)?.to_vec()));
            at += 16;
        }
        let head = file.get(..first)?.to_vec();
        Some(Dat { head, section: None, cpus, page_size, packed: Packed::No })
    }

    fn version_7(file: &[u8], behind_start: usize) -> Option<Dat> {
        let name_end = behind_string(file, behind_start)?;
        let packed = match file.get(behind_start..name_end)? {
            b"none\0" => Packed::No,
            b"zlib\0" => Packed::Zlib,
            b"zstd\0" => Packed::Zstd,
            _ => return None,
        };
        let options = behind_string(file, name_end)?;
        let mut at = u64_at(file, options)? + SECTION_HEADER_LEN;
        // The first buffer, which a list of options describes.
        while u16_at(file, at)? != BUFFER_OPTION {
            if u16_at(file, at)? == 0 {
                at = u64_at(file, at + 6)? + SECTION_HEADER_LEN;
            } else {
                at += 6 + u32_at(file, at + 2)?;
            }
        }
        let section = at + 6;
        let clock = behind_string(file, section + 8)?;
        let numbers = behind_string(file, clock)?;
        let page_size = u32_at(file, numbers)?;
        let mut cpus = Vec::new();
        for cpu in 0..u32_at(file, numbers + 4)? {
            let at = numbers + 8 + cpu * 20 + 4;
            let (place, size) = (u64_at(file, at)?, u64_at(file, at + 8)?);
            let pages = match packed {
                Packed::No => file.get(place..place + size)?.to_vec(),
                _ => unpacked(file.get(place..)?, packed)?,
            };
            cpus.push((at, pages));
        }
        Some(Dat { head: file.to_vec(), section: Some(section), cpus, page_size, packed })
    }

    /// Returns the length of all pages.
    pub fn page_bytes(&self) -> usize {
        self.cpus.iter().map(|(_, pages)| pages.len()).sum()
    }

    /// Returns the time from the first event to the last, plus a nanosecond.
    pub fn span(&self) -> u64 {
        let (mut first, mut last) = (u64::MAX, 0);
        for bytes in self.cpus.iter().flat_map(|(_, pages)| pages.chunks(self.page_size)) {
            let Some(mut page) = Page::new(bytes) else { continue };
            while let Some((time, _)) = page.next(bytes) {
                (first, last) = (first.min(time), last.max(time));
            }
        }
        last.saturating_sub(first) + 1
    }

    /// Returns the file with its pages repeated, each time later by [`Dat::span`].
    pub fn repeated(&self, times: usize) -> Vec<u8> {
        let span = self.span();
        let mut file = self.head.clone();
        file.resize(file.len().next_multiple_of(self.page_size), 0);
        if let Some(section) = self.section {
            let place = file.len() as u64;
            let old = u64_at(&self.head, section).unwrap_or(0);
            // A section of the kind and compression of the first.
            let kind = self.head.get(old..old + SECTION_HEADER_LEN).unwrap_or_default();
            file.extend(kind);
            file[section..section + 8].copy_from_slice(&place.to_le_bytes());
            let flags = place as usize + 2;
            let is_compressed = if self.packed == Packed::No { 0 } else { IS_COMPRESSED };
            file[flags..flags + 2].copy_from_slice(&is_compressed.to_le_bytes());
        }
        for (at, pages) in &self.cpus {
            file.resize(file.len().next_multiple_of(self.page_size), 0);
            let place = file.len();
            let later = |round: usize| self.later(pages, round as u64 * span);
            let size = match self.packed {
                Packed::No => {
                    (0..times).for_each(|round| file.extend(later(round)));
                    file.len() - place
                }
                packed => {
                    file.extend([0; 4]);
                    let mut chunks = 0_u32;
                    for round in 0..times {
                        for chunk in later(round).chunks(PAGES_IN_CHUNK * self.page_size) {
                            push_packed(&mut file, chunk, packed);
                            chunks += 1;
                        }
                    }
                    file[place..place + 4].copy_from_slice(&chunks.to_le_bytes());
                    // The size does not include the number of chunks.
                    file.len() - place - 4
                }
            };
            file[*at..at + 8].copy_from_slice(&(place as u64).to_le_bytes());
            file[at + 8..at + 16].copy_from_slice(&(size as u64).to_le_bytes());
        }
        file
    }

    /// Returns later copies of pages. A page has the time of its first event; those of further
    /// events are relative to it.
    fn later(&self, pages: &[u8], by: u64) -> Vec<u8> {
        let mut pages = pages.to_vec();
        for page in pages.chunks_mut(self.page_size) {
            let Some(time) = page.first_chunk_mut::<8>() else { continue };
            *time = (u64::from_le_bytes(*time) + by).to_le_bytes();
        }
        pages
    }
}

/// Unpacks chunks: their number; and for each its packed and unpacked length, and its data.
fn unpacked(bytes: &[u8], packed: Packed) -> Option<Vec<u8>> {
    let (mut whole, mut at) = (Vec::new(), 4);
    for _ in 0..u32_at(bytes, 0)? {
        let data = bytes.get(at + 8..at + 8 + u32_at(bytes, at)?)?;
        match packed {
            Packed::Zlib => ZlibDecoder::new(data).read_to_end(&mut whole).ok()?,
            _ => StreamingDecoder::new(data).ok()?.read_to_end(&mut whole).ok()?,
        };
        at += 8 + data.len();
    }
    Some(whole)
}

fn push_packed(file: &mut Vec<u8>, chunk: &[u8], packed: Packed) {
    let data = match packed {
        Packed::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            let written = encoder.write_all(chunk).and_then(|()| encoder.finish());
            written.unwrap_or_default()
        }
        _ => compress_to_vec(chunk, CompressionLevel::Fastest),
    };
    file.extend((data.len() as u32).to_le_bytes());
    file.extend((chunk.len() as u32).to_le_bytes());
    file.extend(data);
}
