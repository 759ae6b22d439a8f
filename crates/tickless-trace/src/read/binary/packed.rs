//! Unpacks what trace-cmd compresses: the sections of a trace.dat, and the pages of a CPU's buffer.

use super::bytes::Bytes;
use core::ops::Range;
use flate2::read::ZlibDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::Read;

#[derive(Clone, Copy, Default)]
pub(super) enum Compression {
    #[default]
    None,
    Zlib,
    Zstd,
}

/// Unpacks compressed pieces. Keeps its zstd decoder, because building the decoder's tables takes
/// time.
struct Unpacker {
    compression: Compression,
    zstd: FrameDecoder,
}

impl Unpacker {
    fn new(compression: Compression) -> Unpacker {
        Unpacker { compression, zstd: FrameDecoder::new() }
    }

    /// Takes a piece from `bytes` (its packed length, its unpacked length, and the data), and
    /// appends the unpacked data to `whole`. `None` if the piece is damaged.
    fn unpack(&mut self, bytes: &mut Bytes<'_>, whole: &mut Vec<u8>) -> Option<()> {
        let (packed, length) = (bytes.u32()?, bytes.u32()?);
        let mut packed = bytes.take_u64(packed.into())?;
        let (before, limit) = (whole.len(), u64::from(length));
        match self.compression {
            Compression::None => whole.extend(packed),
            Compression::Zlib => {
                ZlibDecoder::new(packed).take(limit).read_to_end(whole).ok()?;
            }
            Compression::Zstd => {
                let decoder =
                    StreamingDecoder::new_with_decoder(&mut packed, &mut self.zstd).ok()?;
                decoder.take(limit).read_to_end(whole).ok()?;
            }
        }
        ((whole.len() - before) as u64 == limit).then_some(())
    }
}

pub(super) fn unpacked(bytes: &mut Bytes<'_>, compression: Compression) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    Unpacker::new(compression).unpack(bytes, &mut whole)?;
    Some(whole)
}

pub(super) struct Pages<'a> {
    source: Source<'a>,
    page_size: usize,
    /// Where the current page is, in the file or in the unpacked chunks.
    current: Range<usize>,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Packed(Box<Chunks<'a>>),
}

struct Chunks<'a> {
    bytes: Bytes<'a>,
    left: u32,
    unpacker: Unpacker,
    /// The unpacked bytes from the current page on.
    unpacked: Vec<u8>,
}

impl<'a> Pages<'a> {
    pub(super) fn plain(bytes: &'a [u8], page_size: usize) -> Pages<'a> {
        Pages { source: Source::Plain(bytes), page_size, current: 0..0 }
    }

    /// Reads compressed pages. `bytes` begins with the number of chunks; the chunks follow, and
    /// each contains some pages.
    pub(super) fn packed(bytes: &'a [u8], page_size: usize, compression: Compression) -> Pages<'a> {
        let mut bytes = Bytes(bytes);
        let left = bytes.u32().unwrap_or(0);
        let unpacker = Unpacker::new(compression);
        let chunks = Chunks { bytes, left, unpacker, unpacked: Vec::new() };
        Pages { source: Source::Packed(Box::new(chunks)), page_size, current: 0..0 }
    }

    /// Returns the page that [`advance`](Pages::advance) went to. The last page may be incomplete.
    pub(super) fn current(&self) -> &[u8] {
        let bytes = match &self.source {
            Source::Plain(bytes) => bytes,
            Source::Packed(chunks) => &chunks.unpacked[..],
        };
        &bytes[self.current.clone()]
    }

    pub(super) fn advance(&mut self) -> bool {
        let mut start = self.current.end;
        let length = match &mut self.source {
            Source::Plain(bytes) => bytes.len(),
            Source::Packed(chunks) => {
                if chunks.unpacked.len() - start < self.page_size {
                    chunks.unpacked.drain(..start);
                    start = 0;
                    while chunks.unpacked.len() < self.page_size && chunks.unpack() {}
                }
                chunks.unpacked.len()
            }
        };
        self.current = start..length.min(start + self.page_size);
        !self.current.is_empty()
    }
}

impl Chunks<'_> {
    /// Unpacks the next chunk; returns whether there was a whole one. All chunks behind a damaged
    /// one are lost.
    fn unpack(&mut self) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        let is_whole = self.unpacker.unpack(&mut self.bytes, &mut self.unpacked).is_some();
        self.left = if is_whole { left } else { 0 };
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression as Level;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn chunk(whole: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(whole).unwrap();
        let packed = encoder.finish().unwrap();
        let lengths = [packed.len() as u32, whole.len() as u32].map(u32::to_le_bytes);
        [&lengths.concat()[..], &packed].concat()
    }

    fn all(mut pages: Pages<'_>) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        while pages.advance() {
            found.push(pages.current().to_vec());
        }
        assert!(!pages.advance(), "the end is final");
        found
    }

    #[test]
    fn pages_continue_across_chunks() {
        let bytes: Vec<u8> = (0..10).collect();
        let wanted = [&bytes[..4], &bytes[4..8], &bytes[8..]].map(<[u8]>::to_vec);
        assert_eq!(all(Pages::plain(&bytes, 4)), wanted);
        let chunks = [chunk(&bytes[..3]), chunk(&bytes[3..5]), chunk(&bytes[5..])];
        let mut packed = [&3_u32.to_le_bytes()[..], &chunks.concat()].concat();
        assert_eq!(all(Pages::packed(&packed, 4, Compression::Zlib)), wanted);
        let second = 4 + chunks[0].len();
        packed[second + 4] = 99;
        let cut = all(Pages::packed(&packed, 4, Compression::Zlib));
        assert_eq!(cut.concat()[..3], bytes[..3]);
        assert!(cut.concat().len() <= 5, "{cut:?}");
    }
}
