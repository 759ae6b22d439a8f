//! Turns a `trace.dat` into a [`Trace`]: the events as the kernel recorded them, with the names of
//! functions and threads that the file has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};

use super::attributes::Context;
use super::build::Reading;
use super::dat::{self, Dat, Entry, Field, Found, Ring, Source};
use super::event::{Event, EventKind};
use super::fields::printable;
use super::gap::Loss;
use super::header::Tool;
use super::prefix::cpu_id;
use super::problem::{Cause, Unusable};
use super::reader::Reader;
use super::symbols::Symbols;
use super::{Record, Trace};

/// The clocks of the ring buffer that count nanoseconds.
const CLOCKS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];

/// Reads a whole `trace.dat`. O(n log n) in the number of events.
pub(super) fn read(path: &str, file: &Source<'_>) -> Result<Trace, Unusable> {
    let mut dat = dat::read(file)?;
    let mut reader = Reader::of_recording(&mut dat);
    let mut recorded = std::mem::take(&mut dat.buffers);
    recorded.retain(|buffer| buffer.places.iter().any(|(.., size)| *size > 0));
    let name = |buffer: &dat::Buffer| match buffer.name.as_str() {
        "" => "the top instance".to_string(),
        name => printable(name.as_bytes()),
    };
    if recorded.len() > 1 {
        let names: Vec<String> = recorded.iter().map(name).collect();
        return Err(Unusable::Several { names: names.join(", ") });
    }
    if let Some(buffer) = recorded.pop() {
        reader.buffer(&dat, &buffer, file)?;
    }
    reader.finish_records(path)
}

/// The events of a CPU that are still to come.
struct Stream<'a> {
    cpu: CpuId,
    ring: Ring<'a>,
    /// The time of the next event, and where its record is in the ring.
    next: (u64, Range<usize>),
    /// Whether events are missing before the next one.
    is_lost: bool,
}

impl Reader {
    /// Takes what a recording has beside its events.
    pub(super) fn of_recording(dat: &mut Dat) -> Reader {
        let mut reader = Reader::default();
        reader.names.symbols = Symbols::parse(std::mem::take(&mut dat.symbols));
        reader.header.names_tool = true;
        reader.header.tool = Some(Tool::Kernel);
        reader.header.kernel = dat.release.as_deref().map(|release| printable(release.as_bytes()));
        reader.header.cpus = dat.cpus;
        for line in dat.threads.split(|&byte| byte == b'\n') {
            let mut words = line.splitn(2, |&byte| byte == b' ');
            let pid = words.next().and_then(super::fields::decimal);
            if let (Some(pid), Some(name)) =
                (pid.and_then(|pid| u32::try_from(pid).ok()), words.next())
            {
                reader.tasks.insert(pid, printable(name).into());
            }
        }
        reader.tasks.insert(0, "<idle>".into());
        reader
    }

    /// Reads the events of all CPUs in the order of their times, and numbers them from 1.
    fn buffer(
        &mut self,
        dat: &Dat,
        buffer: &dat::Buffer,
        file: &Source<'_>,
    ) -> Result<(), Unusable> {
        let clock = buffer.clock.as_str();
        if !clock.is_empty() && !CLOCKS.contains(&clock) {
            return Err(Unusable::Clock { clock: printable(clock.as_bytes()) });
        }
        let mut missed = 0;
        let mut sources = Vec::new();
        // For each CPU, the time of its next event.
        let mut order = BinaryHeap::new();
        let unpacked = buffer.unpacked.as_ref().map(Source::List);
        let file = unpacked.as_ref().unwrap_or(file);
        for (at, (cpu, pages)) in buffer.cpus.iter().enumerate() {
            let cpu = cpu_id((*cpu).into())
                .ok_or(Unusable::Damaged { form: "trace.dat", what: "table of CPUs" })?;
            let ring = Ring::new(file, pages.clone(), buffer.page_size, dat.formats.data);
            let mut source = Stream { cpu, ring, next: (0, 0..0), is_lost: false };
            if self.advance(&mut source, &mut missed) {
                order.push(Reverse((source.next.0, at)));
            }
            sources.push(source);
        }
        let mut losses = Vec::new();
        while let Some(mut first) = order.peek_mut() {
            let source = &mut sources[first.0.1];
            let (cpu, (time, at)) = (source.cpu, source.next.clone());
            match self.entry(dat, cpu, source.ring.entry(time, at)) {
                Some(true) if std::mem::take(&mut source.is_lost) => {
                    losses.push(Loss { line: self.records.len() as u32 - 1, cpu: Some(cpu) });
                }
                Some(_) => {}
                None => {
                    let damage = source.ring.skip_page();
                    self.lost(source, damage, &mut missed);
                }
            }
            if self.advance(source, &mut missed) {
                first.0.0 = source.next.0;
            } else {
                PeekMut::pop(first);
            }
        }
        let counted = dat.statistics.iter().filter(|(name, _)| *name == buffer.name);
        let statistics: Vec<&str> = counted.map(|(_, text)| &**text).collect();
        for (at, source) in sources.iter().enumerate() {
            // With the option `overwrite` off, the kernel drops the last events, and only counts.
            let dropped = statistics.get(at).map_or(0, |text| counter(text, "dropped events"));
            if dropped > 0 {
                self.lose(Some(dropped), Some(source.cpu));
            }
            let is_cut = buffer.is_cut(at);
            if is_cut {
                self.note_file(Cause::PagesDamaged);
            }
            if dropped > 0 || source.is_lost || is_cut {
                losses.push(Loss { line: u32::MAX - 1, cpu: Some(source.cpu) });
            }
        }
        let overrun: u64 = statistics.iter().map(|text| counter(text, "overrun")).sum();
        if overrun > missed {
            self.lose(Some(overrun - missed), None);
        }
        self.losses = losses;
        Ok(())
    }

    /// Goes to the next event of a CPU. Returns `false` if there is none.
    fn advance(&mut self, source: &mut Stream<'_>, missed: &mut u64) -> bool {
        while let Some(found) = source.ring.next() {
            match found {
                Found::Event(time, at) => {
                    source.next = (time, at);
                    return true;
                }
                loss @ Found::Lost { .. } => self.lost(source, loss, missed),
            }
        }
        false
    }

    /// Notes that events of a CPU are missing.
    fn lost(&mut self, source: &mut Stream<'_>, loss: Found, missed: &mut u64) {
        if let Found::Lost { count, is_damage } = loss {
            source.is_lost = true;
            *missed += count.unwrap_or(0);
            match is_damage {
                true => self.note_file(Cause::PagesDamaged),
                false => self.lose(count, Some(source.cpu)),
            }
        }
    }

    /// Reads an event. Returns whether it is of a kind that is read; `None` if it is of none that
    /// the file describes.
    pub(super) fn entry(&mut self, dat: &Dat, cpu: CpuId, entry: Entry<'_>) -> Option<bool> {
        self.line_number += 1;
        let record = entry.record;
        let id = u16::from_le_bytes([*record.first()?, *record.get(1)?]);
        let (kind, name, format) = dat.formats.of(id)?;
        let Some(kind) = *kind else {
            self.skip_unknown(name);
            return Some(false);
        };
        // A record that is longer than its last field, and its padding, has others in it. Only the
        // name of an interrupt has no fixed length.
        const PADDING_MAX: usize = 11;
        let end = format.last().map_or(0, Field::end).saturating_add(PADDING_MAX);
        if record.len() > end && kind != EventKind::IrqEntry {
            return None;
        }
        let pid = u32::from_le_bytes(record.get(4..8)?.try_into().ok()?);
        let context = Context::from_flags(*record.get(2)?, *record.get(3)? & 0xf);
        let event =
            Event::read(&mut Reading::of_record(kind, format, record, cpu, &mut self.names));
        let event = match event {
            Ok(event) => event,
            Err(cause) => {
                self.skip(cause);
                return None;
            }
        };
        let line = self.records.len() as u32 + 1;
        self.push(Record { time: Ns(entry.time), event, line, cpu, context, pid });
        Some(true)
    }
}

/// Returns a counter of the text `stats` of a CPU's buffer; 0 if it is not there.
pub(crate) fn counter(text: &str, key: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
