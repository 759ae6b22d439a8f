//! The events of a trace in memory.
//!
//! A [`Record`] is 56 bytes, half of which many events do not need, and a trace may have ten
//! million of them. So records are kept packed and are unpacked when they are read: each has a
//! head of 24 bytes, and fields that do not fit into the head follow in a second list. Packing
//! loses nothing: a record comes out as it was put in.

use super::attributes::Context;
use super::event::{Event, EventKind};
use super::pack::Bits;
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};

/// One event, with the time, the CPU and the thread at which it occurred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    pub time: Ns,
    pub event: Event,
    pub line: u32,
    pub cpu: CpuId,
    pub context: Context,
    /// The thread that the CPU ran or interrupted; 0 for the idle task.
    pub pid: u32,
}

/// A sequence of records, packed into 24 to 56 bytes each: 24 for switches, wakeups, idle states
/// and interrupts. Methods return unpacked copies of records.
#[derive(Clone, Default, Debug)]
pub struct Records {
    heads: Vec<Head>,
    words: Vec<u32>,
}

/// The part of a packed record that every record has. It contains the event's fields if these are
/// short.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: Ns,
    line: u32,
    pid: u32,
    /// A number of 40 bits: the packed fields, if they are below [`OUTSIDE`]; else [`OUTSIDE`] plus
    /// the place of the fields in [`Records::words`].
    fields: [u8; 5],
    /// The kind of the event, and in the three lowest bits its context.
    kind: u8,
    cpu: CpuId,
}

// Keep the head small: each byte more makes a trace of ten million events ten megabytes larger.
const _: () = assert!(size_of::<Head>() == 24);

const OUTSIDE: u64 = 1 << 39;

/// The kind and the context of an event share a byte.
const CONTEXT_BITS: u32 = 3;
const _: () = assert!(Context::ALL.len() <= 1 << CONTEXT_BITS);
const _: () = assert!(EventKind::ALL.len() <= 1 << (u8::BITS - CONTEXT_BITS));

impl Records {
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.heads[..]) + size_of_val(&self.words[..])
    }

    pub fn at(&self, place: usize) -> Record {
        self.heads[place].record(&self.words)
    }

    pub fn first(&self) -> Option<Record> {
        self.iter().next()
    }

    pub fn last(&self) -> Option<Record> {
        self.iter().next_back()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Record> + ExactSizeIterator + Clone {
        self.range(0..self.len())
    }

    pub fn range(
        &self,
        places: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = Record> + ExactSizeIterator + Clone {
        self.heads[places].iter().map(|head| head.record(&self.words))
    }

    /// Returns the records of the given kinds in order. Others are skipped without unpacking.
    pub fn of_kinds(&self, kinds: &[EventKind]) -> impl Iterator<Item = Record> {
        let wanted = kinds.iter().fold(0_u32, |wanted, &kind| wanted | 1 << kind as u32);
        let is_wanted = move |head: &&Head| wanted >> (head.kind >> CONTEXT_BITS) & 1 != 0;
        self.heads.iter().filter(is_wanted).map(|head| head.record(&self.words))
    }

    pub fn kinds(&self) -> impl Iterator<Item = EventKind> {
        self.heads.iter().map(Head::kind)
    }

    pub(super) fn times(&self) -> impl Iterator<Item = (Ns, u32)> + Clone {
        self.heads.iter().map(|head| (head.time, head.line))
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.heads.iter().map(|head| head.pid)
    }

    /// Returns how many records at the beginning satisfy `is_before`. No record after the first one
    /// that does not satisfy `is_before` may satisfy it. O(log n).
    pub fn partition_point(&self, mut is_before: impl FnMut(&Record) -> bool) -> usize {
        self.heads.partition_point(|head| is_before(&head.record(&self.words)))
    }

    pub(super) fn push(&mut self, record: Record) {
        let Record { time, event, line, cpu, context, pid } = record;
        let mut bits = Bits::default();
        event.pack(&mut bits);
        let fields = bits.number().filter(|number| *number < OUTSIDE).unwrap_or_else(|| {
            let place = self.words.len() as u64;
            bits.write(&mut self.words);
            OUTSIDE | place
        });
        let [fields @ .., _, _, _] = fields.to_le_bytes();
        let kind = (event.kind() as u8) << CONTEXT_BITS | context as u8;
        self.heads.push(Head { time, line, pid, fields, kind, cpu });
    }

    pub(super) fn sort_by_time(&mut self) {
        self.heads.sort_by_key(|head| head.time);
    }

    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&Record) -> bool) {
        self.heads.retain(|head| is_kept(&head.record(&self.words)));
    }
}

impl Head {
    fn kind(&self) -> EventKind {
        EventKind::ALL[usize::from(self.kind >> CONTEXT_BITS)]
    }

    fn record(&self, words: &[u32]) -> Record {
        let &Head { time, line, pid, fields: [a, b, c, d, e], kind, cpu } = self;
        let context = Context::ALL[usize::from(kind & ((1 << CONTEXT_BITS) - 1))];
        let fields = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]);
        let kind = self.kind();
        let mut bits = match fields.checked_sub(OUTSIDE) {
            None => Bits::from_number(fields),
            Some(place) => Bits::read(&words[place as usize..], kind.bits()),
        };
        Record { time, event: Event::unpack(kind, &mut bits), line, cpu, context, pid }
    }
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Records {
        let mut packed = Records::default();
        records.into_iter().for_each(|record| packed.push(record));
        packed
    }
}
