//! Sets up what the kernel records (events, clock, buffers), and hands the recording over.

use super::idle::{IdleEvents, IdleStops, idle_thread};
use super::instance::{Instance, remove_leftovers};
use super::watcher::Watcher;
use super::{dat, kernel};
use crate::cgroup::Watch;
use crate::read::{Cause, Context, IDLE_NOT_RECORDED, LIMITS_KNOWN, Record, Steal, Trace, running};
use crate::record::error::RecordError;
use crate::record::statistics::Statistics;
use crate::record::tracefs::Tracefs;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use tickless_core::time::CpuId;

/// The events that `tickless doctor` records in addition to those that a replay needs.
pub const EXTRA_FOR_DOCTOR: [&str; 1] = ["sched:sched_wakeup"];

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The size of each CPU's buffer; `None` for a default that suits the machine.
    pub buffer_kb: Option<u64>,
    /// Events to record in addition to those that a replay needs, as `SYSTEM:EVENT` or `SYSTEM`.
    pub more: Vec<String>,
}

/// Events that a replay uses if the kernel has them, each with its filter and what the user reads
/// if the kernel lacks the event. Only the timer events are required.
const WANTED: [(&str, Option<&str>, &str); 3] = [
    (
        "irq_vectors/local_timer_entry",
        None,
        "timer interrupts are not recorded: this kernel has no irq_vectors:local_timer_*",
    ),
    ("irq_vectors/local_timer_exit", None, ""),
    // 0x6e0 is IA32_TSC_DEADLINE, the register that programs a CPU's timer interrupt.
    (
        REGISTER_WRITES,
        Some("msr == 0x6e0"),
        "device writes are not recorded: this kernel has neither timer:hrtimer_rearm nor \
         msr:write_msr",
    ),
];

/// Not wanted where the kernel has an event for the writes of every device, `hrtimer_rearm`, which
/// is recorded with all events of `timer`.
const REGISTER_WRITES: &str = "msr/write_msr";
const DEVICE_WRITES: &str = "timer/hrtimer_rearm";

/// A recording that is prepared, running or stopped. Dropping it removes what it created.
#[derive(Debug)]
pub struct Recording {
    instance: Instance,
    pub buffer_kb: u64,
    /// Remarks for the user: what a replay will lack, and what was cleaned up.
    pub notes: Vec<String>,
    idle_before: IdleStops,
    steal_before: Steal,
    /// The groups with a CPU limit, of which the recording lists those that were throttled.
    /// `None` if there are none here, or the caller writes what it needs of them.
    pub limited: Option<Watch>,
    // Fields are dropped in order: the watcher ends after the instance has been removed.
    _watcher: Option<Watcher>,
    // Also keeps tracefs mounted, if this process has mounted it.
    tracefs: Tracefs,
}

impl Recording {
    /// Makes a tracefs instance (trace buffers of its own), and sets it up for
    /// [`Recording::start`]. Removes the instances that killed recorders left. Takes some
    /// milliseconds, mostly for the buffers.
    ///
    /// Starts a second process, which removes the instance if this process is killed. It runs
    /// `program`, which must be the executable of this process. With `None`, the next recorder
    /// removes the instance.
    pub fn prepare(
        tracefs: Tracefs,
        options: &Options,
        program: Option<&Path>,
    ) -> Result<Recording, RecordError> {
        let mut notes = Vec::new();
        let left = remove_leftovers(&tracefs);
        if !left.is_empty() {
            notes.push(format!("removed what killed recorders had left: {}", left.join(", ")));
        }
        notes.extend(other_tracer(&tracefs.root));
        let buffer_kb =
            options.buffer_kb.unwrap_or_else(|| kernel::default_buffer_kb(cpus(&tracefs)));
        let settings = settings(&tracefs.root, options, buffer_kb, &mut notes)?;
        // Start the watcher first: an instance made before it would remain if this process were
        // killed in between.
        let watcher = program.map(Watcher::start).transpose().unwrap_or_else(|error| {
            notes.push(format!(
                "nothing watches this recorder ({error}): if it is killed, the next one cleans up"
            ));
            None
        });
        let instance = Instance::make(&tracefs)?;
        for (file, value) in &settings {
            instance.set(file, value).map_err(|error| match error {
                RecordError::Setting { file, error, .. } if file == BUFFER => {
                    RecordError::Buffer { kilobytes: buffer_kb, error }
                }
                other => other,
            })?;
        }
        let mut limited = Watch::prepare(None).ok();
        limited.iter_mut().for_each(Watch::start);
        Ok(Recording {
            instance,
            buffer_kb,
            notes,
            idle_before: IdleStops::now(),
            steal_before: Steal::now(),
            limited,
            _watcher: watcher,
            tracefs,
        })
    }

    pub fn start(&self) -> Result<(), RecordError> {
        self.instance.set(TRACING_ON, "1")
    }

    pub fn stop(&self) -> Result<(), RecordError> {
        self.instance.set(TRACING_ON, "0")
    }

    /// Returns a function that stops recording with one system call, from any thread. The events
    /// recorded until then stay in the buffers. Drop the function before the recording: an instance
    /// with open files stays.
    pub fn freezer(&self) -> Result<impl Fn() + use<>, RecordError> {
        let file = self.instance.path.join(TRACING_ON);
        let file = File::options().write(true).open(file).map_err(RecordError::Instance)?;
        // This does not fail while the instance exists.
        Ok(move || drop((&file).write_all(b"0")))
    }

    /// Returns a line for each CPU whose buffer was full: with the option `overwrite` off, the
    /// kernel drops the last events and prints nothing.
    fn dropped_at_end(&self) -> String {
        let folder = |cpu: u32| self.instance.path.join(format!("per_cpu/cpu{cpu}"));
        let cpus = (0..).take_while(|&cpu| folder(cpu).exists());
        let dropped = cpus.map(|cpu| (cpu, Statistics::dropped_at_end(&folder(cpu))));
        let line = |(cpu, count)| format!("CPU:{cpu} [{count} EVENTS DROPPED]\n");
        dropped.filter(|(_, dropped)| *dropped > 0).map(line).collect()
    }

    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.instance.path)
    }

    /// Returns the trace as text. Its first lines are comments: `recorded`, which describes what
    /// was recorded, the kernel's release and the clock. Its last lines are which events were
    /// dropped, which threads belong to which process, which groups were throttled, and the steal.
    fn text(&self, recorded: &str) -> Result<impl BufRead + use<>, RecordError> {
        let hz = kernel::hz().map(|hz| format!(" HZ={hz}")).unwrap_or_default();
        let release = kernel::release();
        let recorded = recorded.replace(char::is_control, " ");
        let head = format!("# recorded: {recorded}\n# kernel {release}{hz} clock=mono\n");
        let trace = File::open(self.instance.path.join("trace")).map_err(RecordError::Read)?;
        let mut end = self.dropped_at_end() + &running();
        if let Some(limited) = &self.limited {
            limited.throttled().iter().for_each(|group| end += &format!("{group}\n"));
            end += &format!("{LIMITS_KNOWN}\n");
        }
        end.extend(Steal::now().line_since(&self.steal_before).map(|line| line + "\n"));
        let events = BufReader::with_capacity(1 << 16, trace);
        Ok(io::Read::chain(io::Read::chain(io::Cursor::new(head), events), io::Cursor::new(end)))
    }

    /// Reads the trace from the kernel's buffers, which stay as they are. `name` is for messages.
    pub fn trace(&self, name: &str, recorded: &str) -> Result<Trace, RecordError> {
        let after = IdleStops::now();
        let mut trace = Trace::parse(name, self.text(recorded)?)?;
        let mut events = IdleEvents::new();
        let is_idle = |it: &&Record| it.pid == 0 && it.context == Context::Task;
        for record in trace.records.iter().filter(is_idle) {
            *events.entry(record.cpu.0).or_default() += 1;
        }
        let unseen = self.unseen(&after, &events).into_iter();
        unseen.for_each(|cpu| trace.problems.note(0, Cause::IdleNotRecorded { cpu }));
        Ok(trace)
    }

    /// Writes the trace as text. Returns the CPUs on which the kernel recorded nothing of the idle
    /// thread, and lists them in the trace, too.
    pub fn write(&self, recorded: &str, out: &mut dyn Write) -> Result<Vec<CpuId>, RecordError> {
        let after = IdleStops::now();
        let mut text = self.text(recorded)?;
        let (mut line, mut events) = (Vec::new(), IdleEvents::new());
        loop {
            line.clear();
            let read = text.read_until(b'\n', &mut line);
            if read.map_err(RecordError::Read)? == 0 {
                break;
            }
            if let Some(cpu) = idle_thread(&line) {
                *events.entry(cpu).or_default() += 1;
            }
            out.write_all(&line).map_err(RecordError::Output)?;
        }
        let unseen = self.unseen(&after, &events);
        for CpuId(cpu) in &unseen {
            writeln!(out, "{IDLE_NOT_RECORDED}{cpu}").map_err(RecordError::Output)?;
        }
        Ok(unseen)
    }

    /// Returns the CPUs with too few events of the idle thread; none if events were dropped, since
    /// these are perhaps of the idle threads.
    fn unseen(&self, after: &IdleStops, events: &IdleEvents) -> Vec<CpuId> {
        match self.statistics().dropped {
            0 => after.unseen(&self.idle_before, events),
            _ => Vec::new(),
        }
    }

    /// Writes the trace as a `trace.dat` for trace-cmd and KernelShark, in place of what `file`
    /// contains, and empties the buffers. `file` must be a regular file.
    pub fn write_dat(&self, file: &File) -> Result<(), RecordError> {
        dat::write(&self.tracefs.root, &self.instance.path, file)
    }
}

/// Returns a note if another user traces functions or latencies of the whole machine.
fn other_tracer(tracefs: &Path) -> Option<String> {
    let file = tracefs.join("current_tracer");
    let tracer = std::fs::read_to_string(&file).unwrap_or_default();
    let tracer = tracer.trim();
    (!matches!(tracer, "" | "nop")).then(|| {
        format!(
            "another tracer is at work ({tracer}): it slows what is recorded here. For times that \
             count, end it: echo nop > {}",
            file.display()
        )
    })
}

fn cpus(tracefs: &Tracefs) -> usize {
    std::fs::read_dir(tracefs.root.join("per_cpu")).map_or(1, Iterator::count)
}

const BUFFER: &str = "buffer_size_kb";
const TRACING_ON: &str = "tracing_on";

/// Returns the settings of an instance: files and their contents, in the order in which to write
/// them. Writes nothing: it only checks in tracefs which events exist.
fn settings(
    tracefs: &Path,
    options: &Options,
    buffer_kb: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<(String, String)>, RecordError> {
    let events = tracefs.join("events");
    if !events.join("timer").is_dir() {
        return Err(RecordError::NoTimerEvents);
    }
    let mut settings = vec![
        (BUFFER.to_string(), buffer_kb.to_string()),
        ("trace_clock".to_string(), "mono".to_string()),
    ];
    let enable = |path: &str| (format!("events/{path}/enable"), "1".to_string());
    settings.push(enable("timer"));
    let has_device_writes = events.join(DEVICE_WRITES).is_dir();
    for (path, filter, without) in WANTED {
        if path == REGISTER_WRITES && has_device_writes {
            continue;
        }
        if !events.join(path).is_dir() {
            notes.extend((!without.is_empty()).then(|| without.to_string()));
            continue;
        }
        let filter = filter.map(|filter| (format!("events/{path}/filter"), filter.to_string()));
        settings.extend(filter.into_iter().chain([enable(path)]));
    }
    for event in &options.more {
        let path = event.replacen(':', "/", 1);
        let is_name = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        if !path.split('/').all(is_name) || !events.join(&path).is_dir() {
            return Err(RecordError::NoEvent { event: event.clone() });
        }
        settings.push(enable(&path));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// Returns a temporary folder that looks like a tracefs with some events.
    fn fake(events: &[&str]) -> TempDir {
        let fake = tempfile::tempdir().unwrap();
        for folder in events.iter().map(|event| format!("events/{event}")) {
            fs::create_dir_all(fake.path().join(folder)).unwrap();
        }
        fs::create_dir(fake.path().join("instances")).unwrap();
        fake
    }

    fn set(
        fake: &TempDir,
        more: &[&str],
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>, RecordError> {
        let more = more.iter().map(ToString::to_string).collect();
        let options = Options { more, buffer_kb: None };
        let settings = settings(fake.path(), &options, 64, notes)?;
        Ok(settings.iter().map(|(file, value)| format!("{file} {value}")).collect())
    }

    const ALL: [&str; 5] = [
        "timer/timer_start",
        "irq_vectors/local_timer_entry",
        "irq_vectors/local_timer_exit",
        "msr/write_msr",
        "sched/sched_switch",
    ];

    #[test]
    fn only_needed_events_are_enabled() {
        let (fake, mut notes) = (fake(&ALL), Vec::new());
        let written = set(&fake, &["sched:sched_switch", "sched"], &mut notes).unwrap();
        let needed = [
            "buffer_size_kb 64",
            "trace_clock mono",
            "events/timer/enable 1",
            "events/irq_vectors/local_timer_entry/enable 1",
            "events/irq_vectors/local_timer_exit/enable 1",
            "events/msr/write_msr/filter msr == 0x6e0",
            "events/msr/write_msr/enable 1",
        ];
        assert_eq!(written[..7], needed);
        assert_eq!(written[7..], ["events/sched/sched_switch/enable 1", "events/sched/enable 1"]);
        assert_eq!(set(&fake, &[], &mut notes).unwrap(), needed);
        assert_eq!(notes, [""; 0]);
        // Linux 7.1 has an event of `timer` for every device write, and writes without the other.
        fs::create_dir(fake.path().join("events/timer/hrtimer_rearm")).unwrap();
        assert_eq!(set(&fake, &[], &mut notes).unwrap(), needed[..5]);
        fs::remove_dir(fake.path().join("events/msr/write_msr")).unwrap();
        assert_eq!(set(&fake, &[], &mut notes).unwrap(), needed[..5]);
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn missing_events_are_reported() {
        let (few, mut notes) = (fake(&ALL[..1]), Vec::new());
        assert!(set(&few, &[], &mut notes).is_ok());
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("local_timer") && notes[1].contains("write_msr"), "{notes:?}");
        for wrong in ["sched:nothing", "../instances", "", "timer:", ":", "timer:a:b"] {
            let error = set(&few, &[wrong], &mut notes).unwrap_err();
            assert!(matches!(error, RecordError::NoEvent { .. }), "{wrong}: {error}");
        }
        let error = set(&fake(&[]), &[], &mut notes).unwrap_err();
        assert!(matches!(error, RecordError::NoTimerEvents), "{error}");
    }

    #[test]
    fn instances_of_ended_recorders_are_removed() {
        let fake = fake(&[]);
        let instances = fake.path().join("instances");
        let tracefs = Tracefs::at(fake.path().into());
        let mine = Instance::make(&tracefs).unwrap();
        // An ordinary folder, unlike a tracefs instance, can only be removed if it is empty. Empty
        // it, because the assertion below that it was not removed would otherwise prove nothing.
        fs::remove_file(mine.path.join("tracing_on")).unwrap();
        let name = mine.path.file_name().unwrap().to_str().unwrap().to_string();
        // `reused` has the number of this process, but another start time: its recorder has ended,
        // and the kernel has given the number to a new process.
        let (recorder, _) = name.rsplit_once('-').unwrap();
        let reused = format!("{recorder}1-0");
        let dead = "tickless-4294967295-7-0".to_string();
        let others = ["other-12-345-0", "tickless", "tickless-12", "tickless-x-1-0"];
        for folder in [reused.as_str(), dead.as_str()].iter().chain(&others) {
            fs::create_dir(instances.join(folder)).unwrap();
        }
        let mut removed = remove_leftovers(&tracefs);
        removed.sort();
        let mut want = [reused, dead];
        want.sort();
        assert_eq!(removed, want);
        for left in [name.as_str()].iter().chain(&others) {
            assert!(instances.join(left).is_dir(), "{left}");
        }
    }
}
