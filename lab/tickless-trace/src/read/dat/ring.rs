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

#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Page<'a> {
    pub(in crate::read) bytes: &'a [u8],
    /// Where the events begin.
    pub(in crate::read) data: usize,
}

impl<'a> Page<'a> {
    /// Calls `found` for everything in the page, until it returns `false`: then what it got is
    /// damaged, and so is the rest. `after` is the time of the last event before the page, and of
    /// the last event in it afterwards.
    pub(in crate::read) fn read(self, after: &mut u64, mut found: impl FnMut(Found<'a>) -> bool) {
        if self.parts(after, &mut found).is_none() {
            found(Found::Lost { count: None, is_damage: true });
        }
    }

    /// Finds what is in the page; `None` if it is damaged.
    fn parts(self, after: &mut u64, found: &mut impl FnMut(Found<'a>) -> bool) -> Option<()> {
        let mut head = Bytes(self.bytes);
        let (time, commit) = head.u64().zip(head.u64())?;
        let size = (commit & SIZE) as usize;
        let events = self.bytes.get(self.data..self.data.checked_add(size)?)?;
        if commit & !(SIZE | MISSED | COUNTED) != 0 {
            return None;
        }
        if commit & MISSED != 0 {
            let end = self.bytes.get(self.data + size..).unwrap_or_default();
            let count = if commit & COUNTED != 0 { Bytes(end).u64() } else { None };
            found(Found::Lost { count, is_damage: false });
        }
        self.events(Bytes(events), time, after, found)
    }

    /// Finds the events of a page; `None` if it is damaged.
    fn events(
        self,
        mut bytes: Bytes<'a>,
        mut time: u64,
        after: &mut u64,
        found: &mut impl FnMut(Found<'a>) -> bool,
    ) -> Option<()> {
        const PADDING: u32 = 29;
        const EXTEND: u32 = 30;
        const ABSOLUTE: u32 = 31;
        // The highest bits of an absolute time are not in the buffer.
        const ABSOLUTE_BITS: u32 = 59;
        while !bytes.0.is_empty() {
            let word = bytes.u32()?;
            let (kind, delta) = (word & 31, u64::from(word >> 5));
            match kind {
                PADDING if delta == 0 => return Some(()),
                PADDING => {
                    let length = bytes.u32()?;
                    bytes.take(u64::from(length).checked_sub(4)?)?;
                    time = time.checked_add(delta)?;
                }
                EXTEND => {
                    let high = u64::from(bytes.u32()?) << 27;
                    time = time.checked_add(high + delta)?;
                }
                ABSOLUTE => {
                    let low = (u64::from(bytes.u32()?) << 27) + delta;
                    let high = time >> ABSOLUTE_BITS << ABSOLUTE_BITS;
                    time = high | low & ((1 << ABSOLUTE_BITS) - 1);
                }
                _ => {
                    let length = match kind {
                        0 => u64::from(bytes.u32()?).checked_sub(4)?,
                        words => u64::from(words) * 4,
                    };
                    let record = bytes.take(length)?;
                    time = time.checked_add(delta)?;
                    // The times of a CPU never go back.
                    if time < *after {
                        return None;
                    }
                    *after = time;
                    if !found(Found::Event(Entry { time, record })) {
                        return None;
                    }
                }
            }
        }
        Some(())
    }
}
