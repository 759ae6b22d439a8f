//! Recordings of perf 6.1, read directly: beside what `perf script` prints of them, beside a
//! `trace.dat` of the same time, and damaged.

use crate::support::{assert_documented, data, parsed, recorded, strip};
use std::collections::{HashMap, HashSet};
use tickless_core::time::CpuId;
use tickless_trace::Trace;
use tickless_trace::read::{Cause, Context, NameId, Record};

/// Goal: all that is read from a perf.data is what perf prints of it, but for what either lacks.
#[test]
fn recordings_are_what_perf_prints() {
    for (name, lost) in [("perf-6.12", 0), ("perf-lost", 56)] {
        let (perf, text) =
            (recorded(&format!("{name}.data.gz")), recorded(&format!("{name}.txt.gz")));
        assert_eq!(perf.records.len(), text.records.len());
        let mut names = HashMap::new();
        for (mut one, mut other) in perf.records.iter().copied().zip(text.records.iter().copied()) {
            let (function, named) = (strip(&mut one), strip(&mut other));
            assert_eq!(one, other, "{name}");
            assert_eq!(*names.entry(function).or_insert(named), named, "{name}");
        }
        let functions: HashSet<NameId> = names.values().copied().collect();
        assert_eq!(functions.len(), names.len(), "{name}");
        // perf counts what it lost last only in all, and prints nothing of it.
        assert_eq!((perf.dropped_events, text.dropped_events), (lost, lost.min(7)), "{name}");
        let gaps = if lost > 0 { [1, 3] } else { [0; 2] };
        assert_eq!([text.gaps.len(), perf.gaps.len()], gaps, "{name}");
        assert!(text.gaps.iter().all(|gap| perf.gaps.contains(gap)), "{name}");
        assert_eq!((perf.cpus, &perf.header.kernel), (2, &text.header.kernel));
        assert_eq!(perf.monotonic_ahead_ns, Some(0));
    }
}

/// Both see the same events, and each reads the clock itself.
#[test]
fn perf_records_what_the_ring_buffer_does() {
    let (dat, perf) = (recorded("perf-beside.dat.gz"), recorded("perf-beside.data.gz"));
    let mut seen = 0;
    for cpu in 0..2 {
        let of_cpu = |trace: &Trace| -> Vec<Record> {
            let records = trace.records.iter().filter(|record| record.cpu.0 == cpu);
            records.filter(|record| record.event.timer().is_some()).copied().collect()
        };
        let (dat, perf) = (of_cpu(&dat), of_cpu(&perf));
        let kinds = |records: &[Record]| -> Vec<_> {
            records.iter().map(|record| (record.event.kind(), record.event.timer())).collect()
        };
        let start = perf.windows(dat.len()).position(|window| kinds(window) == kinds(&dat));
        let start = start.unwrap_or_else(|| panic!("CPU {cpu}: {}", dat.len()));
        for (one, other) in dat.iter().zip(&perf[start..]) {
            assert!(one.time.0.abs_diff(other.time.0) < 1_000_000, "{one:?} {other:?}");
            let (mut one, mut other) = (Record { time: other.time, ..*one }, *other);
            for record in [&mut one, &mut other] {
                strip(record);
            }
            assert_eq!(one, other);
            seen += 1;
        }
    }
    assert!(seen > 300, "{seen}");
}

/// What a file is changed into, and a part of the refusal.
type Refused<'a> = (&'a dyn Fn(&mut Vec<u8>), &'a str);

#[test]
fn other_recordings_of_perf_are_refused_by_name() {
    let file = data("perf-lost.data.gz");
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let (size, events) = (number(16), number(24));
    let count = number(32) / size;
    let in_events = |file: &mut Vec<u8>, at: usize, bits: u8| {
        (0..count).for_each(|event| file[events + event * size + at] ^= bits);
    };
    // What a thread of perf writes is elsewhere; here are the ends of rounds.
    let in_folder = |file: &mut Vec<u8>| {
        file[75] |= 1;
        let records = file[number(40)..][..number(48)].chunks_exact_mut(8);
        records.for_each(|record| record.copy_from_slice(&[68, 0, 0, 0, 0, 0, 8, 0]));
    };
    let cases: [Refused<'_>; 12] = [
        (&in_folder, "one of several files in a directory, and has no event. Record without"),
        (&|file| file[8] = 16, "written into a pipe. Record into a file"),
        (&|file| file[48..56].fill(0), "not finished. End perf record with Ctrl-C"),
        (&|file| file[75] |= 8, "compressed. Record without -z"),
        (&|file| file[72] ^= 2, "has no tracepoints. Record all CPUs: perf record -a"),
        (&|file| in_events(file, 25, 4), "without their fields, threads, times or CPUs"),
        (&|file| in_events(file, 16, 2), "only some of the timer events"),
        (&|file| in_events(file, 24, 16), "the values of counters in its samples"),
        (&|file| in_events(file, 41, 16), "the events of some programs only"),
        (&|file| in_events(file, 43, 8), "the last events of each buffer only"),
        (&|file| in_events(file, 92, 1), "times of a clock that can be set"),
        (&|file| file.truncate(events), "formats of events of the perf.data cannot be read"),
    ];
    for (change, want) in cases {
        let mut changed = file.clone();
        change(&mut changed);
        let error = Trace::parse("perf.data", &changed[..]).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}

/// An event has a number for each CPU that was recorded.
#[test]
fn cpus_that_perf_did_not_record_are_gaps() {
    let mut file = data("perf-lost.data.gz");
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    const CPUS: u32 = 7;
    let before = file[72] & ((1 << CPUS) - 1);
    let feature = number(number(40) + number(48) + 16 * before.count_ones() as usize);
    file[feature + 4] += 1;
    let trace = parsed(&file);
    let cause = Cause::CpuNotRecorded { cpu: CpuId(2) };
    assert!(trace.problems.find(&cause).is_some(), "{:?}", trace.problems);
    let unseen = trace.gaps.iter().find(|gap| gap.cpu == CpuId(2)).unwrap();
    assert_eq!(unseen.to.since(unseen.from), trace.span());
}

/// Goal: the book's table of tools is what the files in the tests show.
#[test]
fn the_table_of_tools_is_true() {
    for (tool, kernel, name) in [
        ("ftrace", "6.12", "kernel-recorded.txt.gz"),
        ("ftrace", "6.18", "ftrace-recorded.txt.gz"),
        ("`tickless record`", "6.12", "kernel-recorded.dat.gz"),
        ("`tickless record`", "7.2", "perf-beside.dat.gz"),
        ("trace-cmd 3.1.6, version 6", "6.12", "version-6.dat.gz"),
        ("trace-cmd 3.1.6, version 7", "6.12", "version-7-zstd.dat"),
        ("the same, packed anew by zlib", "6.12", "version-7-zlib.dat.gz"),
        ("trace-cmd 3.1.6 with `-b 8`", "7.2", "lossy-7.2.dat.gz"),
        ("`trace-cmd report -t -N` 3.1.6", "6.12", "version-6.txt.gz"),
        ("`trace-cmd report -t` 3.1.6", "6.18", "trace-cmd-recorded.txt.gz"),
        ("perf 6.1", "6.12", "perf-6.12.data.gz"),
        ("perf 6.1", "7.2", "perf-lost.data.gz"),
        ("perf 6.1", "7.2", "perf-beside.data.gz"),
        ("perf 6.1, `perf inject -b`", "7.2", "perf-injected.data.gz"),
        ("perf 7.2, `perf inject -b`", "7.2", "perf-7.2-injected.data.gz"),
        ("`perf script` 6.1", "6.12", "perf-6.12.txt.gz"),
        ("`perf script` 6.1", "6.18", "perf-recorded.txt.gz"),
        ("`perf script` 6.1", "7.2", "perf-lost.txt.gz"),
    ] {
        let trace = recorded(name);
        assert_eq!(trace.problems.damage().next(), None, "{name}");
        let mut lacks = Vec::new();
        for (cause, what) in [
            (Cause::NamesNotRecorded, "names of functions"),
            (Cause::FlagsNotTrusted, "flags of wheel timers"),
            (Cause::ModesLeftOut, "modes"),
            (Cause::LossesNotShown, "lost events"),
        ] {
            lacks.extend(trace.problems.find(&cause).map(|_| what));
        }
        if trace.records.iter().all(|record| record.context == Context::NotRecorded) {
            lacks.push("context");
        }
        let (events, lacks) = (trace.records.len(), lacks.join(", "));
        let lost = match trace.dropped_events {
            0 => String::new(),
            lost => format!(", {lost} lost"),
        };
        assert_documented(&format!("| {tool} | {kernel} | `{name}` | {events}{lost} | {lacks} |"));
    }
}
