//! From lines to a [`Trace`]: every line ends as a record, a fact, or a counted problem.

use tickless_core::time::{CpuId, Ns};

use super::attributes::Context;
use super::binary::{Decoder, Occurrence, Undecoded};
use super::event::{Event, EventKind};
use super::fields::printable;
use super::header::{Aside, Format, Header, lost_events};
use super::monotonic::MonotonicOffset;
use super::names::Names;
use super::open::{Line, Lines};
use super::payload::{self, BadText};
use super::prefix::{self, NoPrefix, Prefix};
use super::problem::{Cause, MissingPlace, Problems, TraceError};
use super::{Record, Records, Trace, jiffies, soundness};
use crate::record::IDLE_NOT_RECORDED;
use std::collections::HashMap;

/// Reads `lines` to their end.
pub(super) fn read(path: &str, mut lines: Lines<'_>) -> Result<Trace, TraceError> {
    let mut reader = Reader::new();
    while let Some(line) = lines.next() {
        reader.line_number += 1;
        match line {
            Line::Whole(text) => reader.line(text),
            Line::Cut => reader.skip(Cause::LastLineCut),
            Line::TooLong => reader.skip(Cause::LineTooLong),
        }
    }
    reader.finish(path, Ended { is_gzip: lines.is_gzip, broken: lines.broken })
}

/// How a file's lines ended.
struct Ended {
    is_gzip: bool,
    /// What ended them before the end of the file.
    broken: Option<std::io::Error>,
}

/// What was read so far.
pub(super) struct Reader {
    line_number: u64,
    header: Header,
    records: Records,
    names: Names,
    problems: Problems,
    skipped_lines: u64,
    /// Sum of the marks that have a number, and the first mark's line.
    lost: u64,
    lost_line: Option<u32>,
    latest: Ns,
    /// The latest time of each CPU, and how many of its events are earlier than one before them.
    latest_of_cpu: Vec<Ns>,
    cpu_out_of_order: (u64, u32),
    tasks: HashMap<u32, Box<str>>,
    has_nul: bool,
}

impl Reader {
    /// A reader for events that no tool has printed; see [`Reader::occurrence`].
    pub(super) fn of_binary(format: Format) -> Reader {
        let mut reader = Reader::new();
        reader.header.format = format;
        reader
    }

    pub(super) fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Takes an event as the kernel wrote it. It counts as a line.
    pub(super) fn occurrence(&mut self, time: Ns, cpu: CpuId, bytes: &[u8], by: &mut Decoder) {
        self.line_number += 1;
        match by.occurrence(bytes, cpu) {
            Ok(Occurrence { event, context, pid }) => {
                // Perf does not print it, and the same file as text is to be the same trace.
                let is_perf = self.header.format == Format::Perf;
                let context = if is_perf { Context::NotRecorded } else { context };
                let line = self.line_u32();
                if time < self.latest {
                    self.note(Cause::OutOfOrder);
                }
                self.latest = self.latest.max(time);
                self.follow_cpu(cpu, time, line);
                self.records.push(Record { time, event, line, cpu, context, pid });
            }
            Err(Undecoded::Other(name)) => {
                self.skipped_lines += 1;
                self.problems.note_unknown_event(self.line_u32(), name.as_bytes());
            }
            Err(Undecoded::Missing(event, field)) => {
                self.skip(Cause::MissingField { event, field });
            }
            Err(Undecoded::NoFormat) => self.skip(Cause::NotAnEvent),
        }
    }

    /// Ends what [`Reader::of_binary`] began. `tasks` are the names of all threads that are known.
    pub(super) fn finish_binary(
        mut self,
        path: &str,
        decoder: Decoder,
        mut tasks: HashMap<u32, Box<str>>,
    ) -> Result<Trace, TraceError> {
        self.names = decoder.into_names();
        // As the text has them: of threads that something happened in.
        let mut last = None;
        for pid in self.records.pids() {
            if last.replace(pid) == Some(pid) {
                continue;
            }
            self.tasks.entry(pid).or_insert_with(|| {
                let idle = (pid == 0).then(|| "<idle>".into());
                let name = tasks.remove(&pid).or(idle).unwrap_or_else(|| "<...>".into());
                printable(name.as_bytes()).into()
            });
        }
        self.finish(path, Ended { is_gzip: false, broken: None })
    }

    fn new() -> Reader {
        Reader {
            line_number: 0,
            header: Header::new(),
            records: Records::default(),
            names: Names::new(),
            problems: Problems::default(),
            skipped_lines: 0,
            lost: 0,
            lost_line: None,
            latest: Ns::ZERO,
            latest_of_cpu: Vec::new(),
            cpu_out_of_order: (0, 0),
            tasks: HashMap::new(),
            has_nul: false,
        }
    }

    fn line(&mut self, text: &[u8]) {
        if std::str::from_utf8(text).is_err() {
            self.note(Cause::NotUtf8);
        }
        if text.starts_with(b"#") {
            if let Some(cpu) = text.strip_prefix(IDLE_NOT_RECORDED.as_bytes()) {
                return self.idle_not_recorded(cpu);
            }
            return self.header.comment(text);
        }
        match prefix::split(text) {
            Ok(prefix) => self.event(prefix),
            Err(reason) => self.no_event(text, reason),
        }
    }

    fn idle_not_recorded(&mut self, cpu: &[u8]) {
        let cpu = std::str::from_utf8(cpu).ok().and_then(|cpu| cpu.trim().parse().ok());
        if let Some(cpu) = cpu {
            self.note_file(Cause::IdleNotRecorded { cpu: CpuId(cpu) });
        }
    }

    fn event(&mut self, prefix: Prefix<'_>) {
        if prefix.system.is_some() && self.header.format == Format::Unknown {
            self.header.format = Format::Perf;
        }
        let Some(kind) = EventKind::from_name(prefix.name) else {
            return self.unknown_event(&prefix);
        };
        let event = match payload::event(kind, prefix.text, prefix.cpu, &mut self.names) {
            Ok(event) => event,
            Err(BadText::Missing(field)) => {
                return self.skip(Cause::MissingField { event: kind, field });
            }
            Err(BadText::Unreadable(field)) => {
                return self.skip(Cause::UnreadableField { event: kind, field });
            }
        };
        if kind.is_timer() && payload::has_narrow_address(prefix.text) {
            self.note(Cause::NarrowAddresses);
        }
        self.record(prefix, event);
    }

    fn record(&mut self, prefix: Prefix<'_>, event: Event) {
        if prefix.time < self.latest {
            self.note(Cause::OutOfOrder);
        }
        self.latest = self.latest.max(prefix.time);
        let Prefix { cpu, context, time, task, .. } = prefix;
        let line = self.line_u32();
        self.follow_cpu(cpu, time, line);
        match self.tasks.get(&task.pid) {
            Some(known) if known.as_bytes() == task.name => {}
            _ => drop(self.tasks.insert(task.pid, printable(task.name).into())),
        }
        self.records.push(Record { time, event, line, cpu, context, pid: task.pid });
    }

    /// Counts times of one CPU that run backwards: its buffer cannot have had them so.
    fn follow_cpu(&mut self, cpu: CpuId, time: Ns, line: u32) {
        if self.latest_of_cpu.len() <= cpu.index() {
            self.latest_of_cpu.resize(cpu.index() + 1, Ns::ZERO);
        }
        let latest = &mut self.latest_of_cpu[cpu.index()];
        if time < *latest {
            let (count, first) = self.cpu_out_of_order;
            self.cpu_out_of_order = (count + 1, if count == 0 { line } else { first });
        }
        *latest = time.max(*latest);
    }

    fn unknown_event(&mut self, prefix: &Prefix<'_>) {
        if prefix.text.starts_with(b"PERF_RECORD_LOST") {
            return self.lose(lost_events(prefix.text).flatten());
        }
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
        if prefix.name.len() > 64 || !prefix.name.iter().all(is_letter) {
            return self.skip(Cause::NotAnEvent);
        }
        self.skipped_lines += 1;
        self.problems.note_unknown_event(self.line_u32(), prefix.name);
    }

    fn no_event(&mut self, text: &[u8], reason: NoPrefix) {
        self.has_nul |= text.contains(&0);
        match self.header.aside(text) {
            Some(Aside::Nothing) => {}
            Some(Aside::EventsLost(lost)) => self.lose(lost),
            None => self.skip(match reason {
                NoPrefix::NotAnEvent => Cause::NotAnEvent,
                NoPrefix::ClockNotInSeconds => Cause::ClockNotInSeconds,
                NoPrefix::CpuOutOfRange => Cause::CpuOutOfRange,
            }),
        }
    }

    pub(super) fn lose(&mut self, lost: Option<u64>) {
        self.lost = self.lost.saturating_add(lost.unwrap_or(0));
        let line = self.line_u32();
        self.lost_line.get_or_insert(line);
    }

    fn skip(&mut self, cause: Cause) {
        self.skipped_lines += 1;
        self.note(cause);
    }

    /// Notes what concerns the file as a whole.
    pub(super) fn note_file(&mut self, cause: Cause) {
        self.problems.note(0, cause);
    }

    fn note(&mut self, cause: Cause) {
        self.problems.note(self.line_u32(), cause);
    }

    fn line_u32(&self) -> u32 {
        u32::try_from(self.line_number).unwrap_or(u32::MAX)
    }

    fn finish(mut self, path: &str, ended: Ended) -> Result<Trace, TraceError> {
        if !self.records.kinds().any(EventKind::is_timer) {
            return Err(self.nothing_usable(path, ended));
        }
        self.note_end(&ended);
        let found = self.records.len() as u64 + self.skipped_lines;
        let dropped_events = self.note_dropped();
        let cpus = self.refuse_unknown_cpus();
        if self.problems.find(&Cause::OutOfOrder).is_some() {
            self.records.sort_by_time();
        }
        self.refuse_far_times();
        if !self.records.kinds().any(EventKind::is_timer) {
            return Err(self.nothing_usable(path, ended));
        }
        let missing = self.note_unsound();
        self.note_header(found, missing);
        let monotonic = MonotonicOffset::measure(&self.records, &self.names);
        let measured = jiffies::measure(&self.records, &self.names, self.header.hz, monotonic);
        let (hz, jiffies) = measured;
        if let (Some(header), Some(hz)) = (self.header.hz, hz)
            && header != hz.value
        {
            self.problems.note(1, Cause::HzContradicted { header, events: hz.value });
        }
        let has_start = self.records.kinds().any(|kind| kind == EventKind::TimerStart);
        if jiffies.is_none() && has_start {
            self.problems.note(0, Cause::JiffiesNotPlaced);
        }
        Ok(Trace {
            path: path.to_owned(),
            cpus,
            header: self.header,
            records: self.records,
            names: self.names,
            tasks: self.tasks,
            hz,
            jiffies,
            monotonic,
            problems: self.problems,
            lines: self.line_number,
            skipped_lines: self.skipped_lines,
            dropped_events,
        })
    }

    /// Notes what ended the file before its end.
    fn note_end(&mut self, ended: &Ended) {
        let Some(error) = &ended.broken else { return };
        self.note(match (ended.is_gzip, error.kind()) {
            (true, std::io::ErrorKind::UnexpectedEof) => Cause::GzipCut,
            (true, _) => Cause::GzipDamaged,
            (false, _) => Cause::ReadFailed,
        });
    }

    fn note_header(&mut self, found: u64, middle: Option<u32>) {
        if self.header.format == Format::Unknown {
            self.problems.note(0, Cause::NoHeader);
        }
        let promised = self.header.entries.map_or(0, |entries| entries.in_buffer);
        if found < promised {
            let ends = [Cause::LastLineCut, Cause::GzipCut, Cause::GzipDamaged, Cause::ReadFailed];
            let is_cut = ends.iter().any(|cause| self.problems.find(cause).is_some());
            // Every second line or so is one of two that belong together: where more than these
            // are missing in the middle, some of them are seen to be.
            const UNSEEN_MAX: u64 = 20;
            let place = match middle {
                Some(line) => MissingPlace::Middle { line },
                None if is_cut || promised - found > UNSEEN_MAX => MissingPlace::End,
                None => MissingPlace::Unknown,
            };
            self.problems.note(0, Cause::FewerThanPromised { promised, found, place });
        }
    }

    /// Takes out what happened on CPUs that cannot be there, and returns how many CPUs there are.
    fn refuse_unknown_cpus(&mut self) -> u16 {
        let highest =
            |record: &Record| record.event.target().map_or(record.cpu, |to| to.max(record.cpu));
        if let Some(known) = self.header.cpus {
            let refused = soundness::unknown_cpus(&self.records, known);
            if !refused.is_empty() {
                let before = self.records.len() as u64;
                let mut first = 0;
                self.records.retain(|record| {
                    let is_refused =
                        refused.contains(&highest(record)) || refused.contains(&record.cpu);
                    first = if is_refused && first == 0 { record.line } else { first };
                    !is_refused
                });
                let count = before - self.records.len() as u64;
                if count > 0 {
                    self.skipped_lines += count;
                    self.problems.note_many(first, count, Cause::CpuNotInHeader { known });
                }
            }
        }
        let seen = self.records.iter().map(|record| highest(&record).0 + 1).max();
        seen.unwrap_or(0).max(self.header.cpus.unwrap_or(0))
    }

    /// Takes out the few events that are hours away from all others.
    fn refuse_far_times(&mut self) {
        let Some(near) = soundness::without_far_times(&self.records) else { return };
        let far = self.records.len() - near.len();
        let line = if near.start > 0 { 0 } else { near.end };
        let line = self.records.at(line).line;
        self.records.keep(near);
        self.skipped_lines += far as u64;
        self.problems.note_many(line, far as u64, Cause::TimeOutOfPlace);
    }

    /// Notes what cannot have happened like that; returns the first line behind one that is
    /// missing in the middle, if that can be told.
    fn note_unsound(&mut self) -> Option<u32> {
        let of = self.records.len() as u64;
        let (count, line) = self.cpu_out_of_order;
        if soundness::is_many(count, of) {
            self.problems.note_many(line, count, Cause::CpuOutOfOrder { of });
        }
        if let Some((line, count)) = soundness::repeated(&self.records) {
            self.problems.note_many(line, count, Cause::Repeated { of });
        }
        if soundness::has_no_time(&self.records) {
            self.problems.note(0, Cause::NoTime);
        }
        if let Some((line, seconds)) = soundness::jump(&self.records) {
            self.problems.note(line, Cause::TimeJump { seconds });
        }
        // Where events were dropped, pairs are broken, and the trace owns up to it.
        if self.lost_line.is_some() || self.header.overwritten() > 0 {
            return None;
        }
        let halves = soundness::halves(&self.records);
        let line = halves.first?;
        let soundness::Halves { whole, broken, .. } = halves;
        self.problems.note(line, Cause::HalvesMissing { whole, broken });
        Some(line)
    }

    /// The header counts overwritten events, and ftrace also marks where they were: the
    /// larger of both is the number of dropped ones, not the sum.
    fn note_dropped(&mut self) -> u64 {
        let events = self.lost.max(self.header.overwritten());
        if events > 0 || self.lost_line.is_some() {
            let line = self.lost_line.unwrap_or(0);
            self.problems.note(line, Cause::EventsDropped { events });
        }
        events
    }

    fn nothing_usable(self, path: &str, ended: Ended) -> TraceError {
        let path = path.to_owned();
        match ended.broken {
            Some(error) if ended.is_gzip => TraceError::BrokenGzip { path, error },
            Some(error) => TraceError::Read { path, error },
            None if self.has_nul => TraceError::NotText { path },
            None => {
                let first = self.problems.messages(&path).next();
                TraceError::NoTimerEvent { path, lines: self.line_number, first }
            }
        }
    }
}
