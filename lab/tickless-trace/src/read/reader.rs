//! Turns the lines of a text into a [`Trace`]. Each line becomes a record, a fact of the header, or
//! a counted problem.

use tickless_core::time::{CpuId, Ns};

use super::build::Reading;
use super::event::{Event, EventKind};
use super::fields::printable;
use super::header::{Header, lost_events};
use super::names::Names;
use super::open::{Line, Lines};
use super::prefix::{self, Prefix};
use super::problem::{Cause, Problems, Unusable};
use super::processes::Processes;
use super::{Record, Trace, jiffies, monotonic, soundness};
use std::collections::HashMap;
use std::io;

/// Begins a trace's line about a CPU on which the kernel recorded nothing of the idle thread.
pub(crate) const IDLE_NOT_RECORDED: &str = "# idle thread not recorded: CPU ";

pub(super) fn read(path: &str, mut lines: Lines<'_>) -> Result<Trace, Unusable> {
    let mut reader = Reader::default();
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

#[derive(Default)]
struct Reader {
    line_number: u64,
    header: Header,
    records: Vec<Record>,
    names: Names,
    problems: Problems,
    skipped_lines: u64,
    /// How many lost events the trace reports in all, and the line of the first such report.
    lost: u64,
    lost_line: Option<u32>,
    latest: Ns,
    latest_of_cpu: Vec<Ns>,
    /// How many events are earlier than one before them on the same CPU, and the line of the first.
    cpu_out_of_order: (u64, u32),
    tasks: HashMap<u32, Box<str>>,
    processes: Processes,
    has_nul: bool,
}

impl Reader {
    fn line(&mut self, text: &[u8]) {
        if std::str::from_utf8(text).is_err() {
            self.note(Cause::NotUtf8);
        }
        if text.starts_with(b"#") {
            if let Some(cpu) = text.strip_prefix(IDLE_NOT_RECORDED.as_bytes()) {
                return self.idle_not_recorded(cpu);
            }
            if !self.processes.read(text) {
                self.header.comment(text);
            }
            return;
        }
        match prefix::split(text) {
            Ok(prefix) => self.event(&prefix),
            Err(cause) => self.no_event(text, cause),
        }
    }

    fn idle_not_recorded(&mut self, cpu: &[u8]) {
        let cpu = std::str::from_utf8(cpu).ok().and_then(|cpu| cpu.trim().parse().ok());
        if let Some(cpu) = cpu {
            self.note_file(Cause::IdleNotRecorded { cpu: CpuId(cpu) });
        }
    }

    fn event(&mut self, prefix: &Prefix<'_>) {
        // Only perf prints the group of an event.
        self.header.names_tool |= prefix.system.is_some();
        let Some(kind) = EventKind::from_name(prefix.name) else {
            return self.unknown_event(prefix);
        };
        let &Prefix { task, cpu, context, time, text, .. } = prefix;
        let mut reading = Reading::new(kind, text, cpu, &mut self.names);
        let event = match Event::read(&mut reading) {
            Ok(event) => event,
            Err(cause) => return self.skip(cause),
        };
        match self.tasks.get(&task.pid) {
            Some(known) if known.as_bytes() == task.name => {}
            _ => drop(self.tasks.insert(task.pid, printable(task.name).into())),
        }
        self.record(Record { time, event, line: 0, cpu, context, pid: task.pid });
    }

    fn record(&mut self, record: Record) {
        let Record { time, cpu, .. } = record;
        let line = self.line_u32();
        if time < self.latest {
            self.note(Cause::OutOfOrder);
        }
        self.latest = self.latest.max(time);
        if self.latest_of_cpu.len() <= cpu.index() {
            self.latest_of_cpu.resize(cpu.index() + 1, Ns::ZERO);
        }
        // The kernel records the events of a CPU in order of time. If a line is earlier than one
        // before it, the lines were shuffled afterwards.
        let latest = &mut self.latest_of_cpu[cpu.index()];
        if time < *latest {
            let (count, first) = self.cpu_out_of_order;
            self.cpu_out_of_order = (count + 1, if count == 0 { line } else { first });
        }
        *latest = time.max(*latest);
        self.records.push(Record { line, ..record });
    }

    /// Skips an event of an unknown kind, and notes its name, unless no event can have this name.
    fn unknown_event(&mut self, prefix: &Prefix<'_>) {
        if prefix.text.starts_with(b"PERF_RECORD_LOST") {
            return self.lose(lost_events(prefix.text).flatten());
        }
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
        if prefix.name.len() > 64 || !prefix.name.iter().all(is_letter) {
            return self.skip(Cause::NotAnEvent);
        }
        self.skip_unknown(prefix.name);
    }

    /// Handles a line without an event: perhaps a remark of the tracer, for example on lost events.
    fn no_event(&mut self, text: &[u8], cause: Cause) {
        self.has_nul |= text.contains(&0);
        let text = text.trim_ascii();
        if let Some(lost) = lost_events(text) {
            self.lose(lost);
        } else if !self.header.remark(text) {
            self.skip(cause);
        }
    }

    /// Notes lost events. Their number is unknown if `lost` is `None`.
    fn lose(&mut self, lost: Option<u64>) {
        self.lost = self.lost.saturating_add(lost.unwrap_or(0));
        let line = self.line_u32();
        self.lost_line.get_or_insert(line);
    }

    fn skip(&mut self, cause: Cause) {
        self.skipped_lines += 1;
        self.note(cause);
    }

    fn skip_unknown(&mut self, name: &[u8]) {
        self.skipped_lines += 1;
        self.problems.note_unknown_event(self.line_u32(), name);
    }

    fn skip_many(&mut self, line: u32, count: usize, cause: Cause) {
        self.skipped_lines += count as u64;
        self.problems.note_many(line, count as u64, cause);
    }

    fn note_file(&mut self, cause: Cause) {
        self.problems.note(0, cause);
    }

    fn note(&mut self, cause: Cause) {
        self.problems.note(self.line_u32(), cause);
    }

    fn line_u32(&self) -> u32 {
        u32::try_from(self.line_number).unwrap_or(u32::MAX)
    }

    fn has_timer_event(&self) -> bool {
        self.records.iter().any(|record| record.event.timer().is_some())
    }

    fn finish(mut self, path: &str, lines: Lines<'_>) -> Result<Trace, Unusable> {
        if !self.has_timer_event() {
            return Err(self.unusable(path, lines));
        }
        if let Some(error) = &lines.error {
            self.note(match (lines.is_gzip, error.kind()) {
                (true, io::ErrorKind::UnexpectedEof) => Cause::GzipCut,
                (true, _) => Cause::GzipDamaged,
                (false, _) => Cause::ReadFailed,
            });
        }
        let found = self.records.len() as u64 + self.skipped_lines;
        let dropped_events = self.note_dropped();
        let cpus = self.remove_unknown_cpus();
        if self.problems.find(&Cause::OutOfOrder).is_some() {
            self.records.sort_by_key(|record| record.time);
        }
        self.remove_far_times();
        if !self.has_timer_event() {
            return Err(self.unusable(path, lines));
        }
        self.note_unsound();
        self.note_header(found);
        let ahead_ns = monotonic::ahead_ns(&self.records, &self.names);
        let (hz, jiffies) = jiffies::measure(&self.records, &self.names, self.header.hz, ahead_ns);
        if let (Some(header), Some(hz)) = (self.header.hz, hz)
            && header != hz
        {
            self.problems.note(1, Cause::HzContradicted { header, events: hz });
        }
        let mut kinds = self.records.iter().map(|record| record.event.kind());
        let has_start = kinds.any(|kind| kind == EventKind::TimerStart);
        if jiffies.is_none() && has_start {
            self.note_file(Cause::JiffiesNotPlaced);
        }
        Ok(Trace {
            path: path.to_owned(),
            cpus,
            header: self.header,
            records: self.records,
            names: self.names,
            tasks: self.tasks,
            processes: self.processes,
            hz,
            jiffies,
            monotonic_ahead_ns: ahead_ns,
            problems: self.problems,
            skipped_lines: self.skipped_lines,
            dropped_events,
        })
    }

    fn note_header(&mut self, found: u64) {
        if !self.header.names_tool {
            self.note_file(Cause::NoHeader);
        }
        let promised = self.header.promised;
        if found < promised {
            self.note_file(Cause::FewerThanPromised { promised, found });
        }
    }

    /// Removes the events of CPUs that the machine cannot have, and returns the machine's number of
    /// CPUs.
    fn remove_unknown_cpus(&mut self) -> u16 {
        let highest =
            |record: &Record| record.event.target().map_or(record.cpu, |to| to.max(record.cpu));
        if let Some(known) = self.header.cpus {
            let unknown = soundness::unknown_cpus(&self.records, known);
            let (mut removed, mut first) = (0, 0);
            if !unknown.is_empty() {
                self.records.retain(|record| {
                    let is_removed =
                        unknown.contains(&highest(record)) || unknown.contains(&record.cpu);
                    first = if is_removed && removed == 0 { record.line } else { first };
                    removed += usize::from(is_removed);
                    !is_removed
                });
            }
            if removed > 0 {
                self.skip_many(first, removed, Cause::CpuNotInHeader { known });
            }
        }
        let seen = self.records.iter().map(|record| highest(record).0 + 1).max();
        seen.unwrap_or(0).max(self.header.cpus.unwrap_or(0))
    }

    /// Removes the few events that are hours away from all others.
    fn remove_far_times(&mut self) {
        let Some(near) = soundness::without_far_times(&self.records) else { return };
        let far = self.records.len() - near.len();
        let first = if near.start > 0 { 0 } else { near.end };
        let line = self.records[first].line;
        let mut places = 0..;
        self.records.retain(|_| places.next().is_some_and(|place| near.contains(&place)));
        self.skip_many(line, far, Cause::TimeOutOfPlace);
    }

    /// Adds a problem for each kind of damage: lines shuffled, repeated or missing, times equal or
    /// impossible.
    fn note_unsound(&mut self) {
        let of = self.records.len() as u64;
        let (count, line) = self.cpu_out_of_order;
        if soundness::is_many(count, of) {
            self.problems.note_many(line, count, Cause::CpuOutOfOrder { of });
        }
        if let Some((line, count)) = soundness::repeated(&self.records) {
            self.problems.note_many(line, count, Cause::Repeated { of });
        }
        if soundness::has_no_time(&self.records) {
            self.note_file(Cause::NoTime);
        }
        if let Some((line, seconds)) = soundness::jump(&self.records) {
            self.problems.note(line, Cause::TimeJump { seconds });
        }
        // If the kernel dropped events, halves of pairs (entry and exit) are missing, too. The
        // trace reports the dropped events, so that is no damage.
        if self.lost_line.is_some() || self.header.overwritten > 0 {
            return;
        }
        let soundness::Pairs { whole, broken, first } = soundness::pairs(&self.records);
        if let Some(line) = first {
            self.problems.note(line, Cause::HalvesMissing { whole, broken });
        }
    }

    /// Returns how many events were dropped, and adds a problem if any were. The header counts
    /// overwritten events, and ftrace also marks where they were. Both report the same loss, so the
    /// larger number counts, not the sum.
    fn note_dropped(&mut self) -> u64 {
        let events = self.lost.max(self.header.overwritten);
        if events > 0 || self.lost_line.is_some() {
            let line = self.lost_line.unwrap_or(0);
            self.problems.note(line, Cause::EventsDropped { events });
        }
        events
    }

    fn unusable(self, path: &str, lines: Lines<'_>) -> Unusable {
        match lines.error {
            Some(error) if lines.is_gzip => Unusable::BrokenGzip(error),
            Some(error) => Unusable::Read(error),
            None if self.has_nul => Unusable::NotText,
            None => {
                let first = self.problems.messages(path).next();
                Unusable::NoTimerEvent { lines: self.line_number, first }
            }
        }
    }
}
