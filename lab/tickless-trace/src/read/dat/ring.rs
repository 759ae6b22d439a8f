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

use super::Bytes;
use std::slice::Chunks;

/// What the pages have at one place.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) enum Found<'a> {
    Event(Entry<'a>),
    /// Events are missing before the next one: the kernel lost them, and counted them if it could,
    /// or the page is damaged.
    Lost {
        count: Option<u64>,
        is_damage: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Entry<'a> {
    pub(in crate::read) time: u64,
    pub(in crate::read) record: &'a [u8],
}

const MISSED: u64 = 1 << 31;
const COUNTED: u64 = 1 << 30;
const SIZE: u64 = (1 << 27) - 1;

/// The pages of a CPU. As an iterator, what is in them, in order.
#[derive(Clone, Debug)]
pub(in crate::read) struct Ring<'a> {
    pages: Chunks<'a, u8>,
    page_size: usize,
    /// Where the events begin in a page.
    data: usize,
    /// What is left of the current page, and the time of the event before that.
    events: Bytes<'a>,
    time: u64,
    /// The time of the last event, in this page or one before it.
    latest: u64,
    /// Whether the current page was cut off.
    is_cut: bool,
}

const DAMAGE: Found<'static> = Found::Lost { count: None, is_damage: true };

impl<'a> Iterator for Ring<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        loop {
            let part = if !self.events.0.is_empty() {
                self.event().map(|entry| entry.map(Found::Event))
            } else if std::mem::take(&mut self.is_cut) {
                None
            } else {
                let page = self.pages.next()?;
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
    pub(in crate::read) fn new(pages: &'a [u8], page_size: usize, data: usize) -> Ring<'a> {
        let page_size = page_size.max(data + 1);
        let (pages, events) = (pages.chunks(page_size), Bytes(&[]));
        Ring { pages, page_size, data, events, time: 0, latest: 0, is_cut: false }
    }

    /// Skips the rest of the current page, which is damaged.
    pub(in crate::read) fn skip_page(&mut self) -> Found<'a> {
        self.events = Bytes(&[]);
        DAMAGE
    }

    /// Begins a page. Returns the loss before its first event, if there was one; `None` if the page
    /// is damaged.
    fn page(&mut self, page: &'a [u8]) -> Option<Option<Found<'a>>> {
        let mut head = Bytes(page);
        let (time, commit) = head.u64().zip(head.u64())?;
        let size = (commit & SIZE) as usize;
        let events = page.get(self.data..self.data.checked_add(size)?)?;
        // No page is written without an event.
        if commit & !(SIZE | MISSED | COUNTED) != 0 || size == 0 {
            return None;
        }
        (self.events, self.time) = (Bytes(events), time);
        let end = page.get(self.data + size..).unwrap_or_default();
        let count = if commit & COUNTED != 0 { Bytes(end).u64() } else { None };
        Some((commit & MISSED != 0).then_some(Found::Lost { count, is_damage: false }))
    }

    /// Reads one part of a page, which can be other than an event; `None` if it is damaged.
    fn event(&mut self) -> Option<Option<Entry<'a>>> {
        const PADDING: u32 = 29;
        const EXTEND: u32 = 30;
        const ABSOLUTE: u32 = 31;
        // The highest bits of an absolute time are not in the buffer.
        const ABSOLUTE_BITS: u32 = 59;
        let word = self.events.u32()?;
        let (kind, delta) = (word & 31, u64::from(word >> 5));
        // Behind a time comes its event in the same page, even if it was discarded.
        if kind >= EXTEND && Bytes(self.events.0.get(4..)?).u32()? & 31 >= EXTEND {
            return None;
        }
        match kind {
            PADDING if delta == 0 => self.events = Bytes(&[]),
            PADDING => {
                let length = self.events.u32()?;
                self.events.take(u64::from(length).checked_sub(4)?)?;
                self.time = self.time.checked_add(delta)?;
            }
            EXTEND => {
                let high = u64::from(self.events.u32()?) << 27;
                self.time = self.time.checked_add(high + delta)?;
            }
            ABSOLUTE => {
                let low = (u64::from(self.events.u32()?) << 27) + delta;
                let high = self.time >> ABSOLUTE_BITS << ABSOLUTE_BITS;
                self.time = high | low & ((1 << ABSOLUTE_BITS) - 1);
            }
            _ => {
                let length = match kind {
                    0 => u64::from(self.events.u32()?).checked_sub(4)?,
                    words => u64::from(words) * 4,
                };
                let record = self.events.take(length)?;
                self.time = self.time.checked_add(delta)?;
                // The times of a CPU never go back.
                if self.time < self.latest {
                    return None;
                }
                self.latest = self.time;
                return Some(Some(Entry { time: self.time, record }));
            }
        }
        Some(None)
    }
}
