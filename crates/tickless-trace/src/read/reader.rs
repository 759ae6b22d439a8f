//! From lines to a [`Trace`]: every line ends as a record, a fact, or a counted problem.

use tickless_core::time::{CpuId, Ns};

use super::event::{Event, EventKind};
use super::header::{Aside, Format, Header, lost_events};
use super::monotonic::MonotonicOffset;
use super::names::Names;
use super::open::{Line, Lines};
use super::payload::{self, BadText};
use super::prefix::{self, NoPrefix, Prefix};
use super::problem::{Cause, Problems, TraceError};
use super::{Record, Trace, jiffies};

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
    reader.finish(path, lines)
}

/// What was read so far.
struct Reader {
    line_number: u64,
    header: Header,
    records: Vec<Record>,
    names: Names,
    problems: Problems,
    skipped_lines: u64,
    /// Sum of the marks that have a number, and the first mark's line.
    lost: u64,
    lost_line: Option<u32>,
    latest: Ns,
    cpus: u16,
    has_nul: bool,
}

impl Reader {
    fn new() -> Reader {
        Reader {
            line_number: 0,
            header: Header::new(),
            records: Vec::new(),
            names: Names::new(),
            problems: Problems::default(),
            skipped_lines: 0,
            lost: 0,
            lost_line: None,
            latest: Ns::ZERO,
            cpus: 0,
            has_nul: false,
        }
    }

    fn line(&mut self, text: &[u8]) {
        if std::str::from_utf8(text).is_err() {
            self.note(Cause::NotUtf8);
        }
        if text.starts_with(b"#") {
            return self.header.comment(text);
        }
        match prefix::split(text) {
            Ok(prefix) => self.event(prefix),
            Err(reason) => self.no_event(text, reason),
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
        let highest = match event {
            Event::TimerStart { base, .. } | Event::TimerBaseIdle { base, .. } => base,
            Event::SchedWakeup { target, .. } => target,
            Event::CpuIdle { cpu, .. } => cpu,
            _ => CpuId(0),
        };
        self.cpus = self.cpus.max(prefix.cpu.max(highest).0 + 1);
        let Prefix { cpu, context, time, .. } = prefix;
        let line = self.line_u32();
        self.records.push(Record { time, event, line, cpu, context });
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

    fn lose(&mut self, lost: Option<u64>) {
        self.lost = self.lost.saturating_add(lost.unwrap_or(0));
        let line = self.line_u32();
        self.lost_line.get_or_insert(line);
    }

    fn skip(&mut self, cause: Cause) {
        self.skipped_lines += 1;
        self.note(cause);
    }

    fn note(&mut self, cause: Cause) {
        self.problems.note(self.line_u32(), cause);
    }

    fn line_u32(&self) -> u32 {
        u32::try_from(self.line_number).unwrap_or(u32::MAX)
    }

    fn finish(mut self, path: &str, lines: Lines<'_>) -> Result<Trace, TraceError> {
        if !self.records.iter().any(|record| record.event.kind().is_timer()) {
            return Err(self.nothing_usable(path, lines));
        }
        self.note_end(&lines);
        self.note_header();
        let dropped_events = self.note_dropped();
        if self.problems.find(&Cause::OutOfOrder).is_some() {
            self.records.sort_by_key(|record| record.time);
        }
        let monotonic = MonotonicOffset::measure(&self.records, &self.names);
        let (hz, jiffies) = jiffies::measure(&self.records, &self.names, self.header.hz, monotonic);
        let is_start = |record: &Record| record.event.kind() == EventKind::TimerStart;
        if jiffies.is_none() && self.records.iter().any(is_start) {
            self.problems.note(0, Cause::JiffiesNotPlaced);
        }
        Ok(Trace {
            path: path.to_owned(),
            cpus: self.cpus.max(self.header.cpus.unwrap_or(0)),
            header: self.header,
            records: self.records,
            names: self.names,
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
    fn note_end(&mut self, lines: &Lines<'_>) {
        let Some(error) = &lines.broken else { return };
        self.note(match (lines.is_gzip, error.kind()) {
            (true, std::io::ErrorKind::UnexpectedEof) => Cause::GzipCut,
            (true, _) => Cause::GzipDamaged,
            (false, _) => Cause::ReadFailed,
        });
    }

    fn note_header(&mut self) {
        if self.header.format == Format::Unknown {
            self.problems.note(0, Cause::NoHeader);
        }
        let found = self.records.len() as u64 + self.skipped_lines;
        let promised = self.header.entries.map_or(0, |entries| entries.in_buffer);
        if found < promised {
            self.problems.note(0, Cause::FewerThanPromised { promised, found });
        }
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

    fn nothing_usable(self, path: &str, lines: Lines<'_>) -> TraceError {
        let path = path.to_owned();
        match lines.broken {
            Some(error) if lines.is_gzip => TraceError::BrokenGzip { path, error },
            Some(error) => TraceError::Read { path, error },
            None if self.has_nul => TraceError::NotText { path },
            None => {
                let first = self.problems.messages(&path).next();
                TraceError::NoTimerEvent { path, lines: self.line_number, first }
            }
        }
    }
}
