//! Reads a `perf.data` of perf, as it is written into a file.
//!
//! The file begins with the places of three sections: the events that were recorded, the data, and
//! behind the data, the features. One feature is the beginning of a `trace.dat`, with the formats
//! of tracepoints. The data is one record after another, in which a tracepoint's own record is the
//! raw part of a sample. The records of a CPU are in order, except those of nested interrupts.
//!
//! A record has no checksum, but must fit to the events: its number belongs to one event on one
//! CPU, and its raw part to the event's tracepoint. Where one does not, records are missing up to
//! the next sample that fits.
//!
//! `linux-perf-data`, which reads whole files, allocates as much memory as a damaged file says.
//! The crate below it, which reads records, does not.

use byteorder::LittleEndian;
use linux_perf_event_reader::{
    AttrFlags, ClockId, CommonData, Endianness, EventRecord, PerfClock, PerfEventAttr,
    PerfEventType, RawData, RawEventRecord, RecordParseInfo, RecordType, SampleFormat,
    SamplingPolicy, get_record_id,
};
use rustc_hash::FxHashMap;
use tickless_core::time::CpuId;

use super::Trace;
use super::dat::{Bytes, Dat, Entry, lossy, tracing_data};
use super::fields::printable;
use super::gap::Loss;
use super::prefix::cpu_id;
use super::problem::{Cause, Unusable};
use super::reader::Reader;
use super::symbols::Symbols;

pub(super) const MAGIC: &[u8] = b"PERFILE2";
/// The name under which perf records where the kernel is.
const KERNEL: &[u8] = b"[kernel.kallsyms]_text";
const RECORD: &str = "Record all CPUs: perf record -a -k mono -e 'timer:*'";
const OF_A_PROGRAM: &str = "has the events of some programs only";

/// The numbers of the features that are read.
const TRACING_DATA: u64 = 1;
const BUILD_ID: u64 = 2;
const RELEASE: u64 = 4;
const CPUS: u64 = 7;
const COMMAND: u64 = 11;
const IN_FOLDER: u64 = 24;
const COMPRESSED: u64 = 27;

/// What can be in a sample behind its raw part.
const BEHIND_RAW: SampleFormat = SampleFormat::all()
    .difference(SampleFormat::IDENTIFIER.union(SampleFormat::from_bits_retain(0x7ff)));

/// What a file says of its records.
struct Perf<'a> {
    records: &'a [u8],
    /// Whether the file ends before its records do.
    is_cut: bool,
    /// Whether perf has made a folder, which has a file for each CPU if threads have recorded.
    is_in_folder: bool,
    events: Vec<Event>,
    /// The event of each number. Every CPU has numbers of its own.
    numbers: FxHashMap<u64, usize>,
    build_ids: &'a [u8],
    /// The words of the command that recorded, of which each has its size before it.
    command: &'a [u8],
    /// Whether the timer events have fewer numbers than the machine has CPUs: the others were not
    /// recorded.
    is_of_some_cpus: bool,
}

/// How the records of an event are read.
struct Event {
    info: RecordParseInfo,
    /// The number of the event's tracepoint; `None` if it is of another kind.
    tracepoint: Option<u16>,
}

enum Found<'a> {
    Sample {
        number: u64,
        cpu: CpuId,
        entry: Entry<'a>,
    },
    Lost {
        count: u64,
        cpu: CpuId,
    },
    /// The events that were lost in all, which perf counts at the end.
    LostInAll(u64),
    Thread {
        number: u32,
        name: String,
    },
    /// Where `_text` of the kernel was.
    KernelText(u64),
    Other,
}

fn damaged(what: &'static str) -> Unusable {
    Unusable::Damaged { form: "perf.data", what }
}

/// Reads a whole `perf.data`. O(n log n) in the number of events.
pub(super) fn read(path: &str, file: &[u8]) -> Result<Trace, Unusable> {
    let (perf, mut dat) = Perf::open(file)?;
    let mut reader = Reader::of_recording(&mut dat);
    reader.samples(&perf, &dat);
    reader.is_of_some_cpus = perf.is_of_some_cpus;
    if perf.is_in_folder && reader.records.is_empty() {
        let what = "is one of several files in a directory, and has no event";
        return Err(Unusable::Perf { what, with: "Record without --threads" });
    }
    // Only the events of a whole CPU have the idle thread among them.
    if perf.selects_programs() && !reader.records.iter().any(|record| record.pid == 0) {
        return Err(Unusable::Perf { what: OF_A_PROGRAM, with: RECORD });
    }
    if reader.names.symbols.is_empty() {
        reader.note_file(Cause::NamesNotRecorded);
    }
    reader.finish_records(path)
}

impl<'a> Perf<'a> {
    fn open(file: &'a [u8]) -> Result<(Perf<'a>, Dat), Unusable> {
        let refused = |what, with| Err(Unusable::Perf { what, with });
        let mut head = Bytes(file);
        head.take(8).ok_or(damaged("beginning"))?;
        // Into a pipe, perf writes no more than this as a header.
        if head.u64() == Some(16) {
            return refused("was written into a pipe", "Record into a file: perf record -o FILE");
        }
        let mut number = || head.u64().ok_or(damaged("beginning"));
        let [event_size, events_at, events_size, at, size] =
            [number()?, number()?, number()?, number()?, number()?];
        // The types of events, which only old files have.
        number()?;
        number()?;
        let bits = [number()?, number()?, number()?, number()?];
        let has = |feature: u64| bits[feature as usize / 64] >> (feature % 64) & 1 == 1;
        if size == 0 {
            return refused("was not finished", "End perf record with Ctrl-C, and do not kill it");
        }
        if has(COMPRESSED) {
            return refused("is compressed", "Record without -z");
        }
        let section = |at: u64, size: u64| {
            let mut bytes = Bytes(file);
            bytes.take(at)?;
            bytes.take(size)
        };
        // Behind the data are the places of the features, in the order of their numbers.
        let feature = |feature: u64| {
            let before = (0..feature).filter(|other| has(*other)).count() as u64;
            let mut place = Bytes(section(at.checked_add(size)?.checked_add(16 * before)?, 16)?);
            has(feature).then(|| section(place.u64()?, place.u64()?))?
        };
        let records = file.get(usize::try_from(at).unwrap_or(usize::MAX)..).unwrap_or_default();
        let (is_cut, size) = ((records.len() as u64) < size, size.min(records.len() as u64));
        let mut perf = Perf {
            records: &records[..size as usize],
            is_cut,
            is_in_folder: has(IN_FOLDER),
            events: Vec::new(),
            numbers: FxHashMap::default(),
            build_ids: feature(BUILD_ID).unwrap_or_default(),
            command: feature(COMMAND).unwrap_or_default(),
            is_of_some_cpus: false,
        };
        if !has(TRACING_DATA) {
            return refused("has no tracepoints", RECORD);
        }
        let formats = feature(TRACING_DATA).ok_or(damaged("formats of events"))?;
        let mut dat = tracing_data(formats).map_err(damaged)?;
        dat.release = feature(RELEASE).and_then(|text| Bytes(text.get(4..)?).text()).map(lossy);
        dat.cpus = feature(CPUS).and_then(|of| Bytes(of.get(4..)?).u32()?.try_into().ok());
        let mut events = Bytes(section(events_at, events_size).ok_or(damaged("events"))?);
        while let Some(event) = events.take(event_size) {
            let (attr, _) = PerfEventAttr::parse::<_, LittleEndian>(event)
                .map_err(|_| damaged("description of an event"))?;
            let place = event_size.checked_sub(16).and_then(|at| event.get(at as usize..));
            let numbers = place.and_then(|at| section(Bytes(at).u64()?, Bytes(&at[8..]).u64()?));
            let mut numbers = Bytes(numbers.ok_or(damaged("numbers of an event"))?);
            let count = numbers.0.len() / 8;
            while let Some(number) = numbers.u64() {
                perf.numbers.insert(number, perf.events.len());
            }
            let tracepoint = match attr.type_ {
                PerfEventType::Tracepoint(number) => u16::try_from(number).ok(),
                _ => None,
            };
            let format = tracepoint.and_then(|number| dat.formats.of(number));
            if format.is_some_and(|(kind, ..)| kind.is_some()) {
                check(&attr)?;
                let cpus = usize::from(dat.cpus.unwrap_or(0));
                perf.is_of_some_cpus |= (1..cpus).contains(&count);
            }
            let info = RecordParseInfo::new(&attr, Endianness::LittleEndian);
            perf.events.push(Event { info, tracepoint });
        }
        let layout = perf.events.first().map(|event| event.info.id_parse_info);
        if perf.events.iter().any(|event| Some(event.info.id_parse_info) != layout) {
            return refused("has events whose records differ in form", RECORD);
        }
        Ok((perf, dat))
    }

    /// Returns whether the command has an option that selects programs.
    fn selects_programs(&self) -> bool {
        const OPTIONS: [&[u8]; 8] =
            [b"-p", b"--pid", b"-t", b"--tid", b"-u", b"--uid", b"-G", b"--cgroup"];
        let mut words = Bytes(self.command.get(4..).unwrap_or_default());
        std::iter::from_fn(|| words.text_of_u32())
            .any(|word| OPTIONS.iter().any(|option| word.starts_with(option)))
    }

    /// Reads the first record of `bytes`, and returns its size; `None` if it is damaged.
    fn record(&self, bytes: &'a [u8]) -> Option<(usize, Found<'a>)> {
        /// The samples were left out by a filter of perf's, and not lost.
        const FILTERED: u16 = 1 << 15;
        const LAST_KERNEL_TYPE: u32 = 22;
        /// The build id of a file, from `perf inject -b`. It has a mode of the CPU.
        const INJECTED: u32 = 67;
        const LAST_TYPE: u32 = 84;
        let mut head = Bytes(bytes);
        let (kind, misc, size) = (RecordType(head.u32()?), head.u16()?, head.u16()?);
        let body = head.take(u64::from(size).checked_sub(8)?)?;
        let found = |found| Some((usize::from(size), found));
        if kind.0 == INJECTED && size % 4 == 0 && matches!(misc & 0x7fff, 1..=5) {
            return found(Found::Other);
        }
        if size % 8 != 0 || kind.0 == 0 || kind.0 > LAST_TYPE {
            return None;
        }
        if kind.is_user_type() || kind.0 > LAST_KERNEL_TYPE {
            // These have neither a number nor a mode.
            return (misc == 0 && kind.is_user_type()).then(|| found(Found::Other))?;
        }
        let data = RawData::Single(body);
        let layout = &self.events.first()?.info.id_parse_info;
        let number = get_record_id::<LittleEndian>(kind, data, layout);
        let event = match number {
            Some(number) if self.numbers.contains_key(&number) => self.numbers[&number],
            // What perf writes itself has zeros in place of a number, a time and a CPU.
            Some(0) if kind != RecordType::SAMPLE && body.ends_with(&[0; 32]) => 0,
            None if self.events.len() == 1 => 0,
            _ => return None,
        };
        let &Event { info, tracepoint } = self.events.get(event)?;
        let record = RawEventRecord::new(kind, misc, data, info);
        let of_cpu = |data: CommonData| data.cpu.and_then(|cpu| cpu_id(cpu.into()));
        if kind == RecordType::LOST_SAMPLES {
            let count = if misc & FILTERED == 0 { Bytes(body).u64()? } else { 0 };
            return found(Found::LostInAll(count));
        }
        found(match record.parse().ok()? {
            EventRecord::Sample(_) if tracepoint.is_none() => Found::Other,
            EventRecord::Sample(sample) => {
                let RawData::Single(raw) = sample.raw? else { return None };
                // Otherwise the record has a wrong size, and others are in it.
                let is_whole = raw.as_ptr_range().end == body.as_ptr_range().end
                    || info.sample_format.intersects(BEHIND_RAW);
                if Bytes(raw).u16() != tracepoint || !is_whole {
                    return None;
                }
                let entry = Entry { time: sample.timestamp?, record: raw };
                let number = number.unwrap_or_default();
                Found::Sample { number, cpu: cpu_id(sample.cpu?.into())?, entry }
            }
            EventRecord::Lost(lost) => {
                Found::Lost { count: lost.count, cpu: of_cpu(record.common_data().ok()?)? }
            }
            EventRecord::Comm(thread) => Found::Thread {
                number: u32::try_from(thread.tid).ok()?,
                name: printable(&thread.name.as_slice()),
            },
            EventRecord::Mmap(map) if *map.path.as_slice() == *KERNEL => {
                Found::KernelText(map.page_offset)
            }
            _ => Found::Other,
        })
    }
}

/// Refuses a recording of timer events that lacks what a trace needs.
fn check(attr: &PerfEventAttr) -> Result<(), Unusable> {
    let needed = SampleFormat::RAW | SampleFormat::TID | SampleFormat::TIME | SampleFormat::CPU;
    let is_whole = match attr.sampling_policy {
        SamplingPolicy::Period(period) => period.get() == 1,
        _ => false,
    };
    let is_steady = match attr.clock {
        PerfClock::Default => true,
        PerfClock::ClockId(clock) => {
            matches!(clock, ClockId::Monotonic | ClockId::MonotonicRaw | ClockId::Boottime)
        }
    };
    let (what, with) = if !attr.sample_format.contains(needed) {
        ("has timer events without their fields, threads, times or CPUs", RECORD)
    } else if attr.sample_format.contains(SampleFormat::READ) {
        ("has the values of counters in its samples", "Record without `:S`")
    } else if !is_whole {
        ("has only some of the timer events", "Record all: without -c and -F")
    } else if attr.flags.contains(AttrFlags::ENABLE_ON_EXEC) {
        (OF_A_PROGRAM, RECORD)
    } else if attr.flags.contains(AttrFlags::WRITE_BACKWARD) {
        ("has the last events of each buffer only", "Record without --overwrite")
    } else if !is_steady {
        ("has times of a clock that can be set or that is coarse", "Record with -k mono")
    } else {
        return Ok(());
    };
    Err(Unusable::Perf { what, with })
}

impl Reader {
    /// Reads the records in the order of the file.
    fn samples(&mut self, perf: &Perf<'_>, dat: &Dat) {
        // An interrupt can record events between the time of another event and its record.
        const NESTED_NS_MAX: u64 = 1_000_000;
        let mut cpus: FxHashMap<u64, CpuId> = FxHashMap::default();
        let mut latest: FxHashMap<u32, u64> = FxHashMap::default();
        let (mut losses, mut lost_in_all) = (Vec::new(), 0u64);
        let (mut at, mut is_damaged) = (0, false);
        while let Some(rest) = perf.records.get(at..).filter(|rest| !rest.is_empty()) {
            let line = self.records.len() as u32;
            let record = perf.record(rest).filter(|(_, found)| match found {
                Found::Sample { number, cpu, .. } => *cpus.entry(*number).or_insert(*cpu) == *cpu,
                _ => !is_damaged,
            });
            at += record.as_ref().map_or(8, |(size, _)| *size);
            let was_damaged = std::mem::replace(&mut is_damaged, record.is_none());
            let is_broken = match record {
                Some((_, Found::Sample { cpu, entry, .. })) => {
                    let last =
                        std::mem::replace(latest.entry(cpu.0.into()).or_default(), entry.time);
                    let is_back = entry.time.saturating_add(NESTED_NS_MAX) < last;
                    self.entry(dat, cpu, entry).is_none() || is_back
                }
                Some((_, Found::Lost { count, cpu })) => {
                    self.lose(Some(count), Some(cpu));
                    losses.push(Loss { line, cpu: Some(cpu) });
                    false
                }
                Some((_, other)) => {
                    match other {
                        Found::LostInAll(count) => lost_in_all = lost_in_all.saturating_add(count),
                        Found::Thread { number, name } => {
                            self.tasks.insert(number, name.into());
                        }
                        Found::KernelText(text) => {
                            let symbols = Symbols::of_kernel(perf.build_ids, text);
                            self.names.symbols = symbols.unwrap_or_default();
                        }
                        _ => {}
                    }
                    false
                }
                None => !was_damaged,
            };
            if is_broken {
                self.note_file(Cause::PagesDamaged);
                losses.push(Loss { line, cpu: None });
            }
        }
        if perf.is_cut {
            self.note_file(Cause::PagesDamaged);
            losses.push(Loss { line: u32::MAX - 1, cpu: None });
        }
        if lost_in_all > self.lost {
            self.lose(Some(lost_in_all - self.lost), None);
            losses.push(Loss { line: u32::MAX - 1, cpu: None });
        }
        self.losses = losses;
    }
}
