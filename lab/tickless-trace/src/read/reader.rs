//! Turns the lines of a text into a [`Trace`]. Each line becomes a record, a fact of the header, or
//! a counted problem.

mod finish;

use tickless_core::time::{CpuId, Ns};

use super::build::Reading;
use super::event::{Event, EventKind};
use super::fields::{fields, find, printable};
use super::gap::Loss;
use super::header::{Header, Tool, lossy_cpu, lost_events};
use super::names::{NameId, Names};
use super::open::{self, Lines};
use super::prefix::{self, Prefix};
use super::problem::{Cause, Problems, Unusable};
use super::processes::Processes;
use super::soundness::Counts;
use super::{Record, Trace};
use crate::list::List;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::mpsc;
use std::{io, panic, thread};

/// Begins a trace's line about a CPU on which the kernel recorded nothing of the idle thread.
pub(crate) const IDLE_NOT_RECORDED: &str = "# idle thread not recorded: CPU ";

/// How many bytes of a text one thread reads at once.
const PART_LEN: usize = 1 << 20;

pub(super) fn read(path: &str, lines: Lines<'_>) -> Result<Trace, Unusable> {
    read_parts(path, lines, PART_LEN)
}

/// Reads a text in parts of at least `size` bytes, each on a thread of its own, which then waits
/// for the part before it. So the size changes nothing about the result.
fn read_parts(path: &str, mut lines: Lines<'_>, size: usize) -> Result<Trace, Unusable> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let reader = thread::scope(|scope| {
        let mut reader = scope.spawn(Reader::default);
        let mut running = VecDeque::new();
        while let Some(part) = lines.next(size) {
            let (runs, ended) = mpsc::channel::<()>();
            running.push_back(ended);
            reader = scope.spawn(move || {
                let _runs = runs;
                let (mut names, mut fields) = (Names::default(), Vec::new());
                let read =
                    |line: Result<_, _>| line.map(|it| Parsed::of(it, &mut names, &mut fields));
                let lines: Vec<_> = open::lines(&part).map(read).collect();
                let mut reader = joined(reader);
                let names = reader.names.add(&names);
                lines.into_iter().for_each(|line| reader.line(line, &names));
                reader
            });
            if running.len() > threads {
                // An error: the thread has ended.
                let _ = running.pop_front().map(|first| first.recv());
            }
        }
        joined(reader)
    });
    reader.finish(path, lines)
}

/// Waits for a thread, and returns its result. A panic in it continues in the caller.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
}

/// What a line says without those before it.
struct Parsed<'a> {
    text: &'a [u8],
    is_utf8: bool,
    /// The error is why the line has no event.
    prefix: Result<Prefix<'a>, Cause>,
    /// The event, if it is of a known kind.
    event: Option<Result<Event, Cause>>,
}

impl<'a> Parsed<'a> {
    /// Reads a line. The ids of names are those of `names`; `fields` is memory for its fields.
    fn of(text: &'a [u8], names: &mut Names, fields: &mut Vec<(&'a [u8], &'a [u8])>) -> Parsed<'a> {
        let prefix = match text {
            [b'#', ..] => Err(Cause::NotAnEvent),
            _ => prefix::split(text),
        };
        let event = prefix.as_ref().ok().and_then(|prefix| {
            let kind = EventKind::from_name(prefix.name)?;
            Some(Event::read(&mut Reading::new(kind, prefix.text, prefix.cpu, names, fields)))
        });
        Parsed { text, is_utf8: std::str::from_utf8(text).is_ok(), prefix, event }
    }
}

#[derive(Default)]
pub(super) struct Reader {
    pub(super) line_number: u64,
    pub(super) header: Header,
    pub(super) records: List<Record>,
    counts: Counts,
    latest: Ns,
    is_out_of_order: bool,
    pub(super) names: Names,
    problems: Problems,
    pub(super) skipped_lines: u64,
    /// How many lost events the trace reports in all, and the line of the first such report.
    pub(super) lost: u64,
    lost_line: Option<u32>,
    /// Where events are missing.
    pub(super) losses: Vec<Loss>,
    /// How many recordings the lines so far have.
    recordings: u32,
    /// The names before tasks, of which trace-cmd prints one for each instance or host.
    sources: FxHashMap<Box<[u8]>, u64>,
    /// Whether `hrtimer_start` was printed with its mode.
    pub(super) has_modes: bool,
    /// Whether a line that is no event has the name of a timer event.
    has_unread_events: bool,
    pub(super) tasks: FxHashMap<u32, Box<str>>,
    processes: Processes,
    has_nul: bool,
    /// Whether the recording is known to be of some of the machine's CPUs only.
    pub(super) is_of_some_cpus: bool,
}

impl Reader {
    /// Takes the next line. `names` are the ids here of the names in it.
    fn line(&mut self, line: Result<Parsed<'_>, Cause>, names: &[NameId]) {
        self.line_number += 1;
        let Parsed { text, is_utf8, prefix, event } = match line {
            Ok(parsed) => parsed,
            Err(cause) => return self.skip(cause),
        };
        if !is_utf8 {
            self.note(Cause::NotUtf8);
        }
        if text.starts_with(b"#") {
            if let Some(cpu) = text.strip_prefix(IDLE_NOT_RECORDED.as_bytes()) {
                return self.idle_not_recorded(cpu);
            }
            if !self.processes.read(text) {
                self.header.comment(text);
            }
            return self.follow_recordings();
        }
        match prefix {
            Ok(prefix) => self.event(&prefix, event, names),
            Err(cause) => self.no_event(text, cause),
        }
    }

    fn idle_not_recorded(&mut self, cpu: &[u8]) {
        let cpu = std::str::from_utf8(cpu).ok().and_then(|cpu| cpu.trim().parse().ok());
        if let Some(cpu) = cpu {
            self.note_file(Cause::IdleNotRecorded { cpu: CpuId(cpu) });
        }
    }

    fn event(
        &mut self,
        prefix: &Prefix<'_>,
        event: Option<Result<Event, Cause>>,
        names: &[NameId],
    ) {
        // Only perf prints the group of an event.
        if prefix.system.is_some() {
            self.header.names_tool = true;
            self.header.tool.get_or_insert(Tool::Perf);
        }
        if let Some(source) = prefix.task.source {
            match self.sources.get_mut(source) {
                Some(count) => *count += 1,
                None => drop(self.sources.insert(source.into(), 1)),
            }
        }
        let &Prefix { task, cpu, context, time, text, .. } = prefix;
        let mut event = match event {
            Some(Ok(event)) => event,
            Some(Err(cause)) => return self.skip(cause),
            None => return self.unknown_event(prefix),
        };
        if let Some(function) = event.function() {
            *function = names[function.index()];
        }
        self.has_modes |= matches!(event, Event::HrtimerStart { .. })
            && !self.has_modes
            && fields(text).any(|(key, _)| key == b"mode");
        match self.tasks.get(&task.pid) {
            Some(known) if known.as_bytes() == task.name => {}
            _ => drop(self.tasks.insert(task.pid, printable(task.name).into())),
        }
        if time < self.latest {
            self.note(Cause::OutOfOrder);
        }
        self.push(Record { time, event, line: self.line_u32(), cpu, context, pid: task.pid });
    }

    /// Adds an event.
    pub(super) fn push(&mut self, record: Record) {
        self.is_out_of_order |= record.time < self.latest;
        self.latest = self.latest.max(record.time);
        self.counts.see(&record);
        self.records.push(record);
    }

    /// Skips an event of an unknown kind, and notes its name, unless no event can have this name.
    fn unknown_event(&mut self, prefix: &Prefix<'_>) {
        if prefix.name == b"kernel_stack" || prefix.name == b"user_stack" {
            return;
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
            self.lose(lost, lossy_cpu(text));
        } else if !self.header.remark(text) {
            let named = [&b"timer_start: "[..], b"timer_expire_entry: ", b"timer_cancel: "];
            self.has_unread_events |=
                cause == Cause::NotAnEvent && named.iter().any(|name| find(text, name).is_some());
            self.skip(cause);
        }
        self.follow_recordings();
    }

    /// Notes the beginning of another recording in the same file.
    fn follow_recordings(&mut self) {
        if self.header.recordings > self.recordings.max(1) {
            self.miss(None);
        }
        self.recordings = self.header.recordings;
    }

    /// Notes lost events. Their number is unknown if `lost` is `None`, and their CPU if `cpu` is.
    pub(super) fn lose(&mut self, lost: Option<u64>, cpu: Option<CpuId>) {
        self.lost = self.lost.saturating_add(lost.unwrap_or(0));
        let line = self.line_u32();
        self.lost_line.get_or_insert(line);
        self.miss(cpu);
    }

    /// Notes that events are missing before the next line.
    fn miss(&mut self, cpu: Option<CpuId>) {
        self.losses.push(Loss { line: self.line_u32(), cpu });
    }

    pub(super) fn skip(&mut self, cause: Cause) {
        self.skipped_lines += 1;
        self.note(cause);
    }

    pub(super) fn skip_unknown(&mut self, name: &[u8]) {
        self.skipped_lines += 1;
        self.problems.note_unknown_event(self.line_u32(), name);
    }

    fn skip_many(&mut self, line: u32, count: usize, cause: Cause) {
        self.skipped_lines += count as u64;
        self.problems.note_many(line, count as u64, cause);
    }

    pub(super) fn note_file(&mut self, cause: Cause) {
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
        self.finish_records(path)
    }

    fn unusable(self, path: &str, lines: Lines<'_>) -> Unusable {
        match lines.error {
            Some(error) if lines.is_gzip => Unusable::BrokenGzip(error),
            Some(error) => Unusable::Read(error),
            None if self.has_nul => Unusable::NotText,
            None if self.header.is_latency_format || self.has_unread_events => Unusable::Form,
            None => self.no_timer_event(path),
        }
    }

    fn no_timer_event(&self, path: &str) -> Unusable {
        if self.problems.find(&Cause::ClockNotInSeconds).is_some() {
            return Unusable::WholeNumbers;
        }
        let first = self.problems.messages(path).next();
        Unusable::NoTimerEvent { lines: self.line_number, first }
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::Input;
    use super::*;
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::Read;

    /// Returns what a text says if it is read in parts of this size.
    fn read_text(text: &[u8], size: usize) -> Result<(String, Processes), String> {
        let Ok(Input::Text(lines)) = open::open(text) else { panic!("no text") };
        let trace = read_parts("t.txt", lines, size).map_err(|why| why.to_string())?;
        let tasks: BTreeMap<_, _> = trace.tasks.iter().collect();
        let names: Vec<_> = trace.names.iter().collect();
        let lost = (trace.skipped_lines, trace.dropped_events, &trace.gaps);
        let facts = (&trace.header, trace.cpus, &trace.records, names, tasks, &trace.problems);
        Ok((format!("{facts:#?} {lost:?}"), trace.processes))
    }

    #[test]
    fn the_sizes_of_parts_change_nothing() {
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for name in ["ftrace-recorded", "trace-cmd-recorded", "perf-lost", "kernel-recorded"] {
            let path = format!("{}/tests/data/{name}.txt.gz", env!("CARGO_MANIFEST_DIR"));
            let mut text = Vec::new();
            let file = File::open(path).unwrap();
            flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
            // Each time with more damage.
            for _ in 0..6 {
                let whole = read_text(&text, text.len() + 1);
                for size in [1, 300, 1 + random(text.len())] {
                    assert!(read_text(&text, size) == whole, "{name} in parts of {size}");
                }
                let long = vec![b'x'; (1 << 16) - 2 + random(3)];
                for other in [&b"# tracer: nop\n"[..], b"CPU:1 [LOST 12 EVENTS]\n", &long] {
                    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                    let place = ends.map(|(end, _)| end + 1).nth(random(300)).unwrap_or(0);
                    text.splice(place..place, other.iter().copied());
                }
                for _ in 0..20 {
                    let place = random(text.len());
                    text[place] = random(256) as u8;
                }
            }
        }
    }
}
