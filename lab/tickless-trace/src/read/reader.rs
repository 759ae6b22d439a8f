//! Turns the lines of a text into a [`Trace`]. Each line becomes a record, a fact of the header, or
//! a counted problem.

use tickless_core::time::{CpuId, Ns};

use super::build::Reading;
use super::event::{Event, EventKind};
use super::fields::{fields, find, printable};
use super::gap::{self, Loss};
use super::header::{Header, Tool, lossy_cpu, lost_events};
use super::names::{NameId, Names};
use super::open::{self, Lines};
use super::prefix::{self, Prefix};
use super::problem::{Cause, Problems, Unusable};
use super::processes::Processes;
use super::soundness::{self, Cancels, Counts, Soundness};
use super::{Record, Trace, jiffies, monotonic};
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

    /// Makes a trace of the records, after checking that they can be true.
    pub(super) fn finish_records(mut self, path: &str) -> Result<Trace, Unusable> {
        if !self.has_timer_event() {
            return Err(self.no_timer_event(path));
        }
        self.check_readable(path)?;
        let found = self.records.len() as u64 + self.skipped_lines;
        let dropped_events = self.note_dropped();
        let cpus = self.remove_unknown_cpus();
        if self.is_out_of_order {
            self.records.sort_by_key(|record| record.time);
        }
        self.remove_far_times();
        if !self.has_timer_event() {
            return Err(self.no_timer_event(path));
        }
        let (sound, (expiries, readings)) = rayon::join(
            || Soundness::of(&self.records, &self.counts),
            || {
                let ticks = self.names.tick_functions();
                let mut clocks = (monotonic::Expiries::default(), jiffies::Readings::default());
                for record in self.records.iter() {
                    clocks.0.see(record, ticks);
                    clocks.1.see(record, ticks);
                }
                clocks
            },
        );
        self.note_order();
        self.note_unsound(&sound);
        self.note_header(found);
        self.note_untrusted();
        let ahead_ns = expiries.ahead_ns();
        let (silence, hz) = (sound.silence.0, self.header.hz);
        self.losses.extend(gap::silences(&self.records, silence, hz, ahead_ns));
        const WAKEUPS_MIN: usize = 4;
        let min = (!self.is_of_some_cpus).then_some(WAKEUPS_MIN);
        for cpu in soundness::unrecorded_cpus(&self.records, &self.counts, cpus, min) {
            self.note_file(Cause::CpuNotRecorded { cpu });
            self.losses.push(Loss { line: u32::MAX - 1, cpu: Some(cpu) });
        }
        self.losses.sort_by_key(|loss| loss.line);
        let gaps = gap::find(&self.records, &self.losses, cpus);
        if gaps.is_empty() {
            check_possible(&expiries, &sound.cancels)?;
        }
        let (hz, jiffies) = readings.measure(self.header.hz, ahead_ns);
        if let (Some(header), Some(hz)) = (self.header.hz, hz)
            && header != hz
        {
            self.problems.note(1, Cause::HzContradicted { header, events: hz });
        }
        if jiffies.is_none() && self.counts.of(EventKind::TimerStart) > 0 {
            self.note_file(Cause::JiffiesNotPlaced);
        }
        Ok(Trace {
            path: path.to_owned(),
            cpus,
            header: self.header,
            records: self.records,
            counts: self.counts,
            names: self.names,
            tasks: self.tasks,
            processes: self.processes,
            hz,
            jiffies,
            monotonic_ahead_ns: ahead_ns,
            problems: self.problems,
            skipped_lines: self.skipped_lines,
            dropped_events,
            gaps,
        })
    }

    /// Returns an error if the text cannot be trusted as a whole: if most events of a kind are
    /// unreadable, if it has the events of several instances or hosts, or recordings whose times
    /// overlap.
    fn check_readable(&self, path: &str) -> Result<(), Unusable> {
        const FEW: u64 = 8;
        for &event in EventKind::ALL {
            let (unread, first) = self.problems.of_event(event, path);
            let read = self.counts.of(event) as u64;
            if unread >= FEW && unread > read {
                return Err(Unusable::KindUnreadable { event, unread, read, first });
            }
        }
        let named: u64 = self.sources.values().sum();
        let unnamed = self.records.len() as u64 - named.min(self.records.len() as u64);
        let often = self.sources.iter().filter(|(_, count)| **count >= FEW);
        let mut often: Vec<String> = often.map(|(name, _)| printable(name)).collect();
        often.sort();
        if !often.is_empty() && unnamed >= FEW {
            often.push("the top instance".to_string());
        }
        if often.len() > 1 {
            return Err(Unusable::Several { names: often.join(", ") });
        }
        let began = |loss: &&Loss| loss.cpu.is_none();
        for loss in self.losses.iter().filter(began) {
            let (before, after) =
                self.records.split_at(self.records.partition_point(|it| it.line < loss.line));
            let latest = before.iter().map(|record| record.time).max();
            let earliest = after.iter().map(|record| record.time).min();
            if let (Some(latest), Some(earliest)) = (latest, earliest)
                && earliest < latest
                && self.header.recordings > 1
            {
                return Err(Unusable::TwoRecordings { line: loss.line });
            }
        }
        Ok(())
    }

    /// Discards fields that the printing program prints wrongly, and names those that it leaves
    /// out.
    fn note_untrusted(&mut self) {
        let tool = self.header.tool;
        let is_other = |record: &Record| {
            matches!(record.event, Event::TimerStart { is_deferrable: false, .. })
        };
        let has_timers = self.counts.of(EventKind::TimerStart) > 0;
        if tool != Some(Tool::Kernel) && has_timers && !self.records.iter().any(is_other) {
            for place in 0..self.records.len() {
                self.records.pass(place);
                if let Event::TimerStart { is_deferrable, .. } = &mut self.records[place].event {
                    *is_deferrable = false;
                }
            }
            self.note_file(Cause::FlagsNotTrusted);
        }
        let has_starts = self.counts.of(EventKind::HrtimerStart) > 0;
        if tool == Some(Tool::TraceCmd) && has_starts && !self.has_modes {
            self.note_file(Cause::ModesLeftOut);
        }
        if tool == Some(Tool::Perf) && self.lost_line.is_none() {
            self.note_file(Cause::LossesNotShown);
        }
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
        if let Some(known) = self.header.cpus {
            let unknown = self.counts.unknown_cpus(known);
            let is_unknown = |record: &&Record| {
                let target = record.event.target().unwrap_or(record.cpu);
                unknown.contains(&target.max(record.cpu)) || unknown.contains(&record.cpu)
            };
            let first =
                if unknown.is_empty() { None } else { self.records.iter().find(is_unknown) };
            if let Some(first) = first.map(|record| record.line) {
                let known_cpus = self.records.iter().filter(|record| !is_unknown(record));
                let removed = self.keep(known_cpus.copied().collect());
                self.skip_many(first, removed, Cause::CpuNotInHeader { known });
            }
        }
        self.counts.cpus().max(self.header.cpus.unwrap_or(0))
    }

    /// Removes the few events that are hours away from all others.
    fn remove_far_times(&mut self) {
        let Some(near) = soundness::without_far_times(&self.records) else { return };
        let first = if near.start > 0 { 0 } else { near.end };
        let line = self.records[first].line;
        let removed = self.keep(self.records[near].iter().copied().collect());
        self.skip_many(line, removed, Cause::TimeOutOfPlace);
    }

    /// Keeps only some events. Returns how many are removed.
    fn keep(&mut self, records: List<Record>) -> usize {
        self.counts = Counts::default();
        records.iter().for_each(|record| self.counts.see(record));
        std::mem::replace(&mut self.records, records).len() - self.records.len()
    }

    /// Counts the lines out of order, after far times are removed. The kernel records the events of
    /// a CPU in the order of their times. If many are in another, the lines were shuffled.
    fn note_order(&mut self) {
        if self.problems.find(&Cause::OutOfOrder).is_some() {
            let of = self.records.len() as u64;
            let [all, (count, line)] = soundness::out_of_order(&self.records);
            self.problems.correct(&Cause::OutOfOrder, all);
            if soundness::is_many(count, of) {
                self.problems.note_many(line, count, Cause::CpuOutOfOrder { of });
            }
        }
    }

    /// Adds a problem for each kind of damage: lines repeated or missing, times equal or
    /// impossible.
    fn note_unsound(&mut self, sound: &Soundness) {
        let of = self.records.len() as u64;
        let repeats = &sound.repeats;
        if soundness::is_many(repeats.count, of) {
            self.problems.note_many(repeats.first, repeats.count, Cause::Repeated { of });
        }
        if soundness::has_no_time(&self.records) {
            self.note_file(Cause::NoTime);
        }
        if let (silence @ Ns(soundness::LONG_NS..), line) = sound.silence {
            self.problems.note(line, Cause::TimeJump { seconds: silence.0 / 1_000_000_000 });
        }
        // If the kernel dropped events, halves of pairs (entry and exit) are missing, too. The
        // trace reports the dropped events, so that is no damage.
        if self.lost_line.is_some() || self.header.overwritten > 0 {
            return;
        }
        let soundness::Pairs { whole, broken, first, .. } = sound.pairs;
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
            None if self.header.is_latency_format || self.has_unread_events => Unusable::Form,
            None => self.no_timer_event(path),
        }
    }

    fn no_timer_event(&self, path: &str) -> Unusable {
        if self.problems.find(&Cause::ClockNotInSeconds).is_some() {
            return Unusable::Clock { clock: "`counter`, `uptime` or `x86-tsc`".to_string() };
        }
        let first = self.problems.messages(path).next();
        Unusable::NoTimerEvent { lines: self.line_number, first }
    }
}

/// Returns an error if the trace cannot be true: if its clock has another unit than it should, or
/// if more timers were cancelled than were ever pending. The trace must have no gap.
fn check_possible(expiries: &monotonic::Expiries, cancels: &Cancels) -> Result<(), Unusable> {
    if let Some((trace_ns, timer_ns)) = expiries.wrong_unit() {
        let [trace, timer] = [trace_ns, timer_ns].map(|ns| ns as f64 / 1e9);
        return Err(Unusable::WrongUnit { trace, timer });
    }
    let &Cancels { all: cancels, impossible, .. } = cancels;
    if soundness::is_many(impossible, cancels) && impossible * 2 > cancels {
        return Err(Unusable::Impossible { cancels, impossible });
    }
    Ok(())
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
