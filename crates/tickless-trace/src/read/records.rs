//! The events of a trace in memory, as many as there are.
//!
//! A [`Record`] is 56 bytes, of which a switch or a wakeup needs less than half, and a trace may
//! have ten million of these. So records are kept packed, and unpacked when they are read: each is
//! a head of 24 bytes, and what does not fit in there ([`Fields`] says how much that is) is words
//! behind one another in a second list. Nothing is lost: what comes out equals what went in.

use super::attributes::Context;
use super::compact::Fields;
use super::event::{Event, EventKind};
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};

/// One event, where and when it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// When, on the trace's clock.
    pub time: Ns,
    /// What.
    pub event: Event,
    /// The line it came from, from 1.
    pub line: u32,
    /// On which CPU.
    pub cpu: CpuId,
    /// In an interrupt, a softirq or a task, where recorded.
    pub context: Context,
    /// The thread that the CPU was in, which an interrupt only interrupted; 0 for the idle task.
    pub pid: u32,
}

/// Many records, in 24 to 56 bytes each: 24 for switches, wakeups, idle states and interrupts.
/// They are read by value, one or one after the other.
#[derive(Clone, Default, Debug)]
pub struct Records {
    heads: Vec<Head>,
    /// What does not fit the heads.
    words: Vec<u32>,
}

/// What every event has, and what it says if that is short.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: Ns,
    line: u32,
    pid: u32,
    /// What the event says, in 40 bits: a number below [`OUTSIDE`]; or that bit, and where in
    /// [`Records::words`] it is.
    says: [u8; 5],
    /// The kind, and in the three lowest bits the context.
    kind: u8,
    cpu: CpuId,
}

// A head that grows costs ten megabytes for each byte, in a trace of ten million events.
const _: () = assert!(size_of::<Head>() == 24);

const OUTSIDE: u64 = 1 << 39;

/// How the kind and the context share a byte.
const CONTEXT_BITS: u32 = 3;
const _: () = assert!(Context::ALL.len() <= 1 << CONTEXT_BITS);
const _: () = assert!(EventKind::ALL.len() <= 1 << (u8::BITS - CONTEXT_BITS));

impl Records {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// How many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.heads[..]) + size_of_val(&self.words[..])
    }

    /// The record at `place`, from 0. O(1).
    ///
    /// # Panics
    /// When there are not so many.
    pub fn at(&self, place: usize) -> Record {
        self.heads[place].record(&self.words)
    }

    /// The first, if there is one.
    pub fn first(&self) -> Option<Record> {
        self.iter().next()
    }

    /// The last, if there is one.
    pub fn last(&self) -> Option<Record> {
        self.iter().next_back()
    }

    /// All, in order.
    pub fn iter(&self) -> RecordIter<'_> {
        self.range(0..self.len())
    }

    /// Those from one place to before another.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn range(&self, places: Range<usize>) -> RecordIter<'_> {
        RecordIter { heads: self.heads[places].iter(), words: &self.words }
    }

    /// Those of these kinds, in order. The others are passed over without being unpacked.
    pub fn of_kinds(&self, kinds: &[EventKind]) -> impl Iterator<Item = Record> {
        let wanted = kinds.iter().fold(0_u32, |wanted, &kind| wanted | 1 << kind as u32);
        let is_wanted = move |head: &&Head| wanted >> (head.kind >> CONTEXT_BITS) & 1 != 0;
        self.heads.iter().filter(is_wanted).map(|head| head.record(&self.words))
    }

    /// Their kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = EventKind> {
        self.heads.iter().map(Head::kind)
    }

    /// Their times and lines, in order.
    pub(super) fn times(&self) -> impl Iterator<Item = (Ns, u32)> + Clone {
        self.heads.iter().map(|head| (head.time, head.line))
    }

    /// The threads that they happened in, in order.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.heads.iter().map(|head| head.pid)
    }

    /// How many at the beginning `is_before` holds for, if it holds for none behind these.
    /// O(log n).
    pub fn partition_point(&self, mut is_before: impl FnMut(&Record) -> bool) -> usize {
        self.heads.partition_point(|head| is_before(&head.record(&self.words)))
    }

    pub(super) fn push(&mut self, record: Record) {
        let Record { time, event, line, cpu, context, pid } = record;
        let fields = Fields::of(&event, pid);
        let says = fields.short().filter(|short| *short < OUTSIDE).unwrap_or_else(|| {
            let place = self.words.len() as u64;
            fields.write(event.kind(), &mut self.words);
            OUTSIDE | place
        });
        let [says @ .., _, _, _] = says.to_le_bytes();
        let kind = (event.kind() as u8) << CONTEXT_BITS | context as u8;
        self.heads.push(Head { time, line, pid, says, kind, cpu });
    }

    /// Sorts by time. Those of one time stay in their order. O(n log n).
    pub(super) fn sort_by_time(&mut self) {
        self.heads.sort_by_key(|head| head.time);
    }

    /// Keeps those that `is_kept` holds for.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&Record) -> bool) {
        self.heads.retain(|head| is_kept(&head.record(&self.words)));
    }

    /// Keeps those from one place to before another.
    pub(super) fn keep(&mut self, places: Range<usize>) {
        self.heads.truncate(places.end);
        self.heads.drain(..places.start);
    }
}

impl Head {
    fn kind(&self) -> EventKind {
        EventKind::ALL[usize::from(self.kind >> CONTEXT_BITS)]
    }

    fn record(&self, words: &[u32]) -> Record {
        let &Head { time, line, pid, says: [a, b, c, d, e], kind, cpu } = self;
        let context = Context::ALL[usize::from(kind & ((1 << CONTEXT_BITS) - 1))];
        let says = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]);
        let kind = self.kind();
        let fields = match says.checked_sub(OUTSIDE) {
            None => Fields::of_short(says),
            Some(place) => Fields::read(kind, &words[place as usize..]),
        };
        Record { time, event: fields.event(kind, pid), line, cpu, context, pid }
    }
}

/// Records one after the other.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    heads: std::slice::Iter<'a, Head>,
    words: &'a [u32],
}

impl Iterator for RecordIter<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.heads.next().map(|head| head.record(self.words))
    }

    fn nth(&mut self, n: usize) -> Option<Record> {
        self.heads.nth(n).map(|head| head.record(self.words))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.heads.size_hint()
    }
}

impl DoubleEndedIterator for RecordIter<'_> {
    fn next_back(&mut self) -> Option<Record> {
        self.heads.next_back().map(|head| head.record(self.words))
    }
}

impl ExactSizeIterator for RecordIter<'_> {}

impl<'a> IntoIterator for &'a Records {
    type Item = Record;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Records {
        let mut packed = Records::default();
        records.into_iter().for_each(|record| packed.push(record));
        packed
    }
}
