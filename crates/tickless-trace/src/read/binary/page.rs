//! The events of a ring buffer's page.
//!
//! A page begins with the time of its first event and the number of bytes behind the header. An
//! event begins with five bits of length and 27 bits of time since the one before it. Four lengths
//! mean something else: a length in a word of its own, padding, more time, and an absolute time.

use super::bytes::Bytes;
use core::ops::Range;

/// A page of a ring buffer.
#[derive(Debug)]
pub struct Page<'a> {
    bytes: &'a [u8],
    next: Place,
    lost: Option<u64>,
}

/// Where in a page the next event is, for somebody who keeps the page elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    at: usize,
    /// Of the last event.
    end: usize,
    /// Nanoseconds, or whatever the trace's clock counts.
    time: u64,
}

/// The time, and the number of bytes with flags.
const HEADER_LEN: usize = 16;

const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

impl<'a> Page<'a> {
    /// Takes a page; none if it has no header. The events of one that is cut end where it is cut.
    pub fn new(page: &'a [u8]) -> Option<Page<'a>> {
        let (next, lost) = Place::first(page)?;
        Some(Page { bytes: page, next, lost })
    }

    /// Events that were lost before this page; 0 of them if the kernel did not count.
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// How long the page is with its header.
    pub fn length(&self) -> usize {
        self.next.end
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        let (time, event) = self.next.advance(self.bytes)?;
        Some((time, &self.bytes[event]))
    }
}

impl Place {
    /// A page's first event, and the events that were lost before it.
    pub(super) fn first(page: &[u8]) -> Option<(Place, Option<u64>)> {
        let mut header = Bytes(page);
        let (time, commit) = (header.u64()?, header.u64()?);
        let length = usize::try_from(commit & (MISSED_STORED - 1)).ok()?;
        let end = HEADER_LEN + length.min(header.0.len());
        let count = header.0.get(length..).filter(|_| commit & MISSED_STORED != 0);
        let lost =
            (commit & MISSED != 0).then(|| count.and_then(|count| Bytes(count).u64()).unwrap_or(0));
        Some((Place { at: HEADER_LEN, end, time }, lost))
    }

    /// The time of the event, and where in its page it is. Goes to the one after it.
    pub(super) fn advance(&mut self, page: &[u8]) -> Option<(u64, Range<usize>)> {
        let mut events = Bytes(page.get(self.at..self.end)?);
        let Some(length) = self.event(&mut events) else {
            // What follows an event that is cut cannot be told from its rest.
            self.at = self.end;
            return None;
        };
        self.at = self.end - events.0.len();
        Some((self.time, self.at - length..self.at))
    }

    /// Takes the next event from `events`; returns its length, and keeps its time.
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

    fn header(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_le_bytes()
    }

    /// Goal: every kind of entry, with the times that follow from it.
    #[test]
    fn times_add_up() {
        let mut events = Vec::new();
        events.extend([&header(1, 0)[..], b"aaaa"].concat());
        events.extend([&header(30, 5)[..], &2_u32.to_le_bytes()].concat());
        events.extend([&header(0, 7)[..], &12_u32.to_le_bytes(), b"bbbbbbbb"].concat());
        events.extend([&header(29, 1)[..], &8_u32.to_le_bytes(), b"pppp"].concat());
        events.extend([&header(31, 3)[..], &9_u32.to_le_bytes()].concat());
        events.extend([&header(2, 1)[..], b"cccccccc"].concat());
        events.extend(header(29, 0));
        events.extend([&header(1, 0)[..], b"none"].concat());
        let page = page(0, &events, b"");
        let found: Vec<_> = Page::new(&page).unwrap().collect();
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

    /// Goal: a page that is cut anywhere gives what is whole, and ends.
    #[test]
    fn a_cut_page_ends() {
        let event = [&header(1, 1)[..], b"aaaa", &header(0, 1), &12_u32.to_le_bytes()].concat();
        let whole = page(0, &event, b"");
        for length in 0..whole.len() {
            let found = Page::new(&whole[..length]).map_or(0, Iterator::count);
            assert!(found <= 1, "{length}");
        }
        let lies = page(0, &header(0, 1), b"");
        assert_eq!(Page::new(&lies).unwrap().count(), 0);
    }
}
