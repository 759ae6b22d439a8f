//! Turns a `trace.dat` into a [`Trace`]: the events as the kernel recorded them, with the names of
//! functions and threads that the file has.

use tickless_core::time::{CpuId, Ns};

use super::attributes::Context;
use super::build::Reading;
use super::dat::{self, Dat, Entry, Found, Page};
use super::event::Event;
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
pub(super) fn read(path: &str, file: &[u8]) -> Result<Trace, Unusable> {
    let mut dat = dat::read(file)?;
    let mut reader = Reader::default();
    reader.names.symbols = Symbols::parse(std::mem::take(&mut dat.symbols));
    reader.header.names_tool = true;
    reader.header.tool = Some(Tool::Kernel);
    reader.header.kernel = dat.release.as_deref().map(|release| printable(release.as_bytes()));
    reader.header.cpus = dat.cpus;
    for line in dat.threads.split(|&byte| byte == b'\n') {
        let mut words = line.splitn(2, |&byte| byte == b' ');
        let pid = words.next().and_then(super::fields::decimal);
        if let (Some(pid), Some(name)) = (pid.and_then(|pid| u32::try_from(pid).ok()), words.next())
        {
            reader.tasks.insert(pid, printable(name).into());
        }
    }
    reader.tasks.insert(0, "<idle>".into());
    let mut recorded: Vec<&dat::Buffer> = Vec::new();
    for buffer in &dat.buffers {
        // The pages of instances in a file of version 6 are not loaded.
        if !buffer.is_loaded() || buffer.cpus.iter().any(|(_, pages)| !pages.is_empty()) {
            recorded.push(buffer);
        }
    }
    let name = |buffer: &&dat::Buffer| match buffer.name.as_str() {
        "" => "the top instance".to_string(),
        name => printable(name.as_bytes()),
    };
    match recorded[..] {
        [] => {}
        [buffer] => reader.buffer(&dat, buffer)?,
        ref several => {
            let names: Vec<String> = several.iter().map(name).collect();
            return Err(Unusable::Several { names: names.join(", ") });
        }
    }
    reader.finish_records(path)
}

impl Reader {
    fn buffer(&mut self, dat: &Dat, buffer: &dat::Buffer) -> Result<(), Unusable> {
        let clock = buffer.clock.as_str();
        if !clock.is_empty() && !CLOCKS.contains(&clock) {
            return Err(Unusable::Clock { clock: printable(clock.as_bytes()) });
        }
        // For each loss, its CPU and the number of the first event after it.
        let mut losses: Vec<(CpuId, u32)> = Vec::new();
        let mut missed = 0;
        for (at, (cpu, pages)) in buffer.cpus.iter().enumerate() {
            let cpu =
                cpu_id((*cpu).into()).ok_or(Unusable::DamagedDat { what: "table of CPUs" })?;
            let mut after = 0;
            let size = buffer.page_size.max(dat.formats.data + 1);
            for bytes in pages.chunks(size) {
                let page = Page { bytes, data: dat.formats.data };
                page.read(&mut after, |found| match found {
                    Found::Event(entry) => self.entry(dat, cpu, entry).is_some(),
                    Found::Lost { count, is_damage } => {
                        missed += count.unwrap_or(0);
                        losses.push((cpu, self.records.len() as u32));
                        match is_damage {
                            true => self.note_file(Cause::PagesDamaged),
                            false => self.lose(count, Some(cpu)),
                        }
                        true
                    }
                });
                if bytes.len() < size {
                    self.note_file(Cause::PagesDamaged);
                    losses.push((cpu, self.records.len() as u32));
                }
            }
            // With the option `overwrite` off, the kernel drops the last events, and only counts.
            let dropped = dat.statistics.get(at).map_or(0, |text| counter(text, "dropped events"));
            if dropped > 0 {
                self.lose(Some(dropped), Some(cpu));
                losses.push((cpu, self.records.len() as u32));
            }
        }
        let overrun: u64 = dat.statistics.iter().map(|text| counter(text, "overrun")).sum();
        if overrun > missed {
            self.lose(Some(overrun - missed), None);
        }
        self.merge(&losses);
        Ok(())
    }

    /// Reads an event; `None` if it is of no kind that the file describes.
    fn entry(&mut self, dat: &Dat, cpu: CpuId, entry: Entry<'_>) -> Option<()> {
        self.line_number += 1;
        let record = entry.record;
        let id = u16::from_le_bytes([*record.first()?, *record.get(1)?]);
        let (kind, name, format) = dat.formats.events.get(&id)?;
        let Some(kind) = *kind else {
            self.skip_unknown(name);
            return Some(());
        };
        let pid = u32::from_le_bytes(record.get(4..8)?.try_into().ok()?);
        let context = Context::from_flags(*record.get(2)?, *record.get(3)? & 0xf);
        let event =
            Event::read(&mut Reading::of_record(kind, format, record, cpu, &mut self.names));
        let event = match event {
            Ok(event) => event,
            Err(cause) => {
                *self.unread.entry(kind).or_default() += 1;
                self.skip(cause);
                return None;
            }
        };
        let line = self.records.len() as u32;
        self.records.push(Record { time: Ns(entry.time), event, line, cpu, context, pid });
        Some(())
    }

    /// Puts the events of all CPUs in the order of their times, and numbers them from 1.
    fn merge(&mut self, losses: &[(CpuId, u32)]) {
        self.records.sort_by_key(|record| record.time);
        let mut lines = vec![u32::MAX; self.records.len() + 1];
        for (record, line) in self.records.iter_mut().zip(1..) {
            lines[record.line as usize] = line;
            record.line = line;
        }
        let cpu_of = |line: u32| self.records.get(line as usize - 1).map(|record| record.cpu);
        let loss = |&(cpu, first): &(CpuId, u32)| {
            // The next event is of another CPU, or there is none: nothing follows the loss.
            let line = lines[first as usize];
            let is_last = line == u32::MAX || cpu_of(line) != Some(cpu);
            Loss { line: if is_last { u32::MAX - 1 } else { line - 1 }, cpu: Some(cpu) }
        };
        self.losses = losses.iter().map(loss).collect();
        self.losses.sort_by_key(|loss| loss.line);
    }
}

/// Returns a counter of the text `stats` of a CPU's buffer; 0 if it is not there.
pub(crate) fn counter(text: &str, key: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
