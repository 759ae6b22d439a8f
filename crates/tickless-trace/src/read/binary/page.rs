//! Finds the events in a page of the kernel's ring buffer.
//!
//! A page begins with the time of its first event and the number of bytes behind the header. An
//! event begins with five bits of length and 27 bits of time since the event before it. Four values
//! of the length have a special meaning: the length is in a word of its own (0), padding (29), a
//! longer time since the event before (30), and an absolute time (31).

use super::bytes::Bytes;
use core::ops::Range;

/// A position in a page of the kernel's ring buffer. The caller keeps the bytes of the page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    at: usize,
    end: usize,
    time: u64,
    lost: Option<u64>,
}

/// The length of a page's header: 8 bytes of time, and 8 for the number of bytes and its flags.
const HEADER_LEN: usize = 16;

const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

impl Page {
    /// Returns the position before the first event of `page`; `None` if `page` is too short to have
    /// a header.
    pub fn new(page: &[u8]) -> Option<Page> {
        let mut header = Bytes(page);
        let (time, commit) = (header.u64()?, header.u64()?);
        let length = usize::try_from(commit & (MISSED_STORED - 1)).ok()?;
        let end = HEADER_LEN + length.min(header.0.len());
        let count = header.0.get(length..).filter(|_| commit & MISSED_STORED != 0);
        let lost =
            (commit & MISSED != 0).then(|| count.and_then(|count| Bytes(count).u64()).unwrap_or(0));
        Some(Page { at: HEADER_LEN, end, time, lost })
    }

    /// Returns how many events were lost before this page: `None` if none were lost, and 0 if the
    /// kernel did not count the lost ones.
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// Advances to the next event. Returns its time, and where its bytes are in `page`.
    pub fn next(&mut self, page: &[u8]) -> Option<(u64, Range<usize>)> {
        let mut events = Bytes(page.get(self.at..self.end)?);
        let Some(length) = self.event(&mut events) else {
            // An event that is cut does not show where the next one begins, so the page ends here.
            self.at = self.end;
            return None;
        };
        self.at = self.end - events.0.len();
        Some((self.time, self.at - length..self.at))
    }

    /// Takes the next event from `events`, and stores its time in `self.time`. Returns its length.
    fn event(&mut self, events: &mut Bytes<'_>) -> Option<usize> {
        loop {
            let header = events.u32()?;
            let (kind, delta) = (header & 31, u64::from(header >> 5));
            match kind {
                0 => {
                    self.time += delta;
                    let length = events.u32()?.checked_sub(4)?;
                    return Some(events.take(length as usize)?.len());
                }
                29 if delta == 0 => return None,
                29 => {
                    let length = events.u32()?.checked_sub(4)?;
                    events.take(length as usize)?;
                    self.time += delta;
                }
                30 => self.time += delta + (u64::from(events.u32()?) << 27),
                31 => {
                    const BITS: u32 = 27 + 32;
                    let low = delta + (u64::from(events.u32()?) << 27);
                    self.time = low | (self.time >> BITS << BITS);
                }
                words => {
                    self.time += delta;
                    return Some(events.take(words as usize * 4)?.len());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(commit_flags: u64, events: &[u8], behind: &[u8]) -> Vec<u8> {
        let commit = events.len() as u64 | commit_flags;
        let header = [1_000_u64.to_le_bytes(), commit.to_le_bytes()].concat();
        [&header, events, behind].concat()
    }

    /// Returns the time and the bytes of each event in a page.
    fn events(bytes: &[u8]) -> Vec<(u64, &[u8])> {
        let Some(mut page) = Page::new(bytes) else { return Vec::new() };
        let next = || page.next(bytes).map(|(time, event)| (time, &bytes[event]));
        std::iter::from_fn(next).collect()
    }

    fn header(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_le_bytes()
    }

    #[test]
    fn times_add_up() {
        let mut bytes = Vec::new();
        bytes.extend([&header(1, 0)[..], b"aaaa"].concat());
        bytes.extend([&header(30, 5)[..], &2_u32.to_le_bytes()].concat());
        bytes.extend([&header(0, 7)[..], &12_u32.to_le_bytes(), b"bbbbbbbb"].concat());
        bytes.extend([&header(29, 1)[..], &8_u32.to_le_bytes(), b"pppp"].concat());
        bytes.extend([&header(31, 3)[..], &9_u32.to_le_bytes()].concat());
        bytes.extend([&header(2, 1)[..], b"cccccccc"].concat());
        bytes.extend(header(29, 0));
        bytes.extend([&header(1, 0)[..], b"none"].concat());
        let page = page(0, &bytes, b"");
        let found = events(&page);
        let extended = 1_000 + 5 + (2 << 27) + 7;
        assert_eq!(
            found,
            [(1_000, &b"aaaa"[..]), (extended, b"bbbbbbbb"), ((9 << 27) + 3 + 1, b"cccccccc"),]
        );
    }

    #[test]
    fn losses_are_counted() {
        let event = [&header(1, 0)[..], b"aaaa"].concat();
        let counted = page(MISSED | MISSED_STORED, &event, &7_u64.to_le_bytes());
        assert_eq!(Page::new(&counted).unwrap().lost(), Some(7));
        let uncounted = page(MISSED, &event, b"");
        assert_eq!(Page::new(&uncounted).unwrap().lost(), Some(0));
        assert_eq!(Page::new(&page(0, &event, b"")).unwrap().lost(), None);
    }
}
