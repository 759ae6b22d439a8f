//! Makes a trace of the records: checks that they can be true, removes those that cannot, and notes
//! what is missing.

use super::Reader;
use crate::list::List;
use crate::read::event::{Event, EventKind};
use crate::read::fields::printable;
use crate::read::gap::{self, Loss};
use crate::read::header::Tool;
use crate::read::problem::{Cause, Problems, Unusable};
use crate::read::soundness::{self, Cancels, Counts, Soundness};
use crate::read::{Record, Trace, jiffies, monotonic};
use tickless_core::time::Ns;

impl Reader {
    /// Makes a trace of the records, after checking that they can be true.
    pub(in crate::read) fn finish_records(mut self, path: &str) -> Result<Trace, Unusable> {
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
        if let Some((trace_ns, timer_ns)) = expiries.wrong_unit() {
            let [trace, timer] = [trace_ns, timer_ns].map(|ns| ns as f64 / 1e9);
            return Err(Unusable::WrongUnit { trace, timer });
        }
        if gaps.is_empty() {
            check_possible(&sound.cancels, &self.problems)?;
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
}

/// Returns an error if the trace, which must have no gap, cannot be true: if more timers were
/// cancelled than were ever pending, or too few that were pending expired.
fn check_possible(cancels: &Cancels, problems: &Problems) -> Result<(), Unusable> {
    let &Cancels { all: cancels, impossible, starts, unexpired, .. } = cancels;
    if soundness::is_many(impossible, cancels) && impossible * 2 > cancels {
        return Err(Unusable::Impossible { cancels, impossible });
    }
    // Sound traces lack expiries where an idle thread is not recorded: few, unless they say so.
    let says_so = problems.iter().any(|it| matches!(it.cause, Cause::IdleNotRecorded { .. }));
    if !says_so && soundness::is_many(unexpired, starts) && unexpired * 2 > starts {
        return Err(Unusable::Unexpired { starts, unexpired });
    }
    Ok(())
}
