//! The pages of the kernel's ring buffer.
//!
//! A page begins with a time (64 bits) and the number of its bytes, whose highest bits tell whether
//! events before the page were lost, and whether their number is at the end of the page. Then come
//! the events. Each has a word with its length (5 bits) and the time since the event before it (27
//! bits); some lengths stand for something else:
//!
//! | length | what follows |
//! |---|---|
//! | 0 | the length in bytes, including this word of 32 bits, and the event |
//! | 1 to 28 | an event of that many words of 32 bits |
//! | 29 | a discarded event; with no time, the rest of the page is empty |
//! | 30 | the higher bits of the time since the event before, in nanoseconds |
//! | 31 | the higher bits of an absolute time |

use super::{Bytes, Source};
use std::ops::Range;

/// What the pages have at one place.
#[derive(Clone, Debug)]
pub(in crate::read) enum Found {
    /// An event, its time, and where its record is: see [`Ring::entry`].
    Event(u64, Range<usize>),
    /// Events are missing before the next one: the kernel lost them, and counted them if it could,
    /// or the page is damaged.
    Lost { count: Option<u64>, is_damage: bool },
}

#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Entry<'a> {
    pub(in crate::read) time: u64,
    pub(in crate::read) record: &'a [u8],
}

const MISSED: u64 = 1 << 31;
const COUNTED: u64 = 1 << 30;
const SIZE: u64 = (1 << 27) - 1;
/// Linux 7.2 adds the highest bits as a negative number of 32 bits, which sets these too.
const SIGN: u64 = !0 << 32;
/// How much of the file is read at once, if that is more than a page.
const PART: usize = 1 << 16;

/// The pages of a CPU. As an iterator, what is in them, in order.
pub(in crate::read) struct Ring<'a> {
    file: &'a Source<'a>,
    /// Some pages as they are in the file, and where they begin there.
    read: Vec<u8>,
    begin: usize,
    /// Where the pages are that are still to come.
    pages: Range<usize>,
    page_size: usize,
    /// Where the events begin in a page.
    data: usize,
    /// Where the rest of the current page is, and the time of the event before that.
    events: Range<usize>,
    time: u64,
    /// The time of the last event, in this page or one before it.
    latest: u64,
    /// Whether the current page was cut off.
    is_cut: bool,
}

const DAMAGE: Found = Found::Lost { count: None, is_damage: true };

impl Iterator for Ring<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let part = if !self.events.is_empty() {
                self.event()
            } else if std::mem::take(&mut self.is_cut) {
                None
            } else {
                if self.pages.is_empty() {
                    return None;
                }
                let end = self.pages.start.saturating_add(self.page_size).min(self.pages.end);
                let page = std::mem::replace(&mut self.pages.start, end)..end;
                self.is_cut = page.len() < self.page_size;
                self.page(page)
            };
            match part {
                Some(None) => {}
                Some(found) => return found,
                None => return Some(self.skip_page()),
            }
        }
    }
}

impl<'a> Ring<'a> {
    /// Reads the pages that are at this place.
    pub(in crate::read) fn new(
        file: &'a Source<'a>,
        pages: Range<usize>,
        page_size: usize,
        data: usize,
    ) -> Ring<'a> {
        let (read, begin, page_size) = (Vec::new(), 0, page_size.max(data + 1));
        let (events, time, latest, is_cut) = (0..0, 0, 0, false);
        Ring { file, read, begin, pages, page_size, data, events, time, latest, is_cut }
    }

    /// Returns what is at a place of the current page.
    fn get(&self, at: Range<usize>) -> &[u8] {
        &self.read[at.start - self.begin..at.end - self.begin]
    }

    /// Reads a page, and those after it.
    fn load(&mut self, page: &Range<usize>) -> Option<()> {
        if page.start < self.begin || page.end > self.begin + self.read.len() {
            let pages = (PART / self.page_size).max(1).saturating_mul(self.page_size);
            let rest = page.start..self.pages.end.max(page.end);
            self.read.resize(rest.len().min(pages), 0);
            self.begin = page.start;
            if !self.file.read(self.begin, &mut self.read) {
                self.read.clear();
                return None;
            }
        }
        Some(())
    }

    /// Returns the event that was found last.
    pub(in crate::read) fn entry(&self, time: u64, at: Range<usize>) -> Entry<'_> {
        Entry { time, record: self.get(at) }
    }

    /// Skips the rest of the current page, which is damaged.
    pub(in crate::read) fn skip_page(&mut self) -> Found {
        self.events = 0..0;
        DAMAGE
    }

    /// Begins a page. Returns the loss before its first event, if there was one; `None` if the page
    /// is damaged.
    fn page(&mut self, place: Range<usize>) -> Option<Option<Found>> {
        self.load(&place)?;
        let page = self.get(place.clone());
        let mut head = Bytes(page);
        let (time, mut commit) = head.u64().zip(head.u64())?;
        if commit & (SIGN | MISSED) == SIGN | MISSED {
            commit &= !SIGN;
        }
        let size = (commit & SIZE) as usize;
        page.get(self.data..self.data.checked_add(size)?)?;
        // No page is written without an event.
        if commit & !(SIZE | MISSED | COUNTED) != 0 || size == 0 {
            return None;
        }
        let begin = place.start + self.data;
        let end = page.get(self.data + size..).unwrap_or_default();
        let count = if commit & COUNTED != 0 { Bytes(end).u64() } else { None };
        (self.events, self.time) = (begin..begin + size, time);
        Some((commit & MISSED != 0).then_some(Found::Lost { count, is_damage: false }))
    }

    /// Reads one part of a page, which can be other than an event; `None` if it is damaged.
    fn event(&mut self) -> Option<Option<Found>> {
        const PADDING: u32 = 29;
        const EXTEND: u32 = 30;
        const ABSOLUTE: u32 = 31;
        // The highest bits of an absolute time are not in the buffer.
        const ABSOLUTE_BITS: u32 = 59;
        let Range { start, end } = self.events;
        let mut events = Bytes(&self.read[start - self.begin..end - self.begin]);
        let word = events.u32()?;
        let (kind, delta) = (word & 31, u64::from(word >> 5));
        // Behind a time comes its event in the same page, even if it was discarded.
        if kind >= EXTEND && Bytes(events.0.get(4..)?).u32()? & 31 >= EXTEND {
            return None;
        }
        match kind {
            PADDING if delta == 0 => events = Bytes(&[]),
            PADDING => {
                let length = events.u32()?;
                events.take(u64::from(length).checked_sub(4)?)?;
                self.time = self.time.checked_add(delta)?;
            }
            EXTEND => {
                let high = u64::from(events.u32()?) << 27;
                self.time = self.time.checked_add(high + delta)?;
            }
            ABSOLUTE => {
                let low = (u64::from(events.u32()?) << 27) + delta;
                let high = self.time >> ABSOLUTE_BITS << ABSOLUTE_BITS;
                self.time = high | low & ((1 << ABSOLUTE_BITS) - 1);
            }
            _ => {
                let length = match kind {
                    0 => u64::from(events.u32()?).checked_sub(4)?,
                    words => u64::from(words) * 4,
                };
                events.take(length)?;
                let end = end - events.0.len();
                self.time = self.time.checked_add(delta)?;
                // The times of a CPU never go back.
                if self.time < self.latest {
                    return None;
                }
                self.latest = self.time;
                self.events.start = end;
                return Some(Some(Found::Event(self.time, end - length as usize..end)));
            }
        }
        self.events.start = end - events.0.len();
        Some(None)
    }
}
