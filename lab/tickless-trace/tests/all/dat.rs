//! Recordings of trace-cmd, read directly. The files were recorded with trace-cmd 3.1.6 on Linux
//! 6.12; their texts are those of `trace-cmd report -t -N`, and of the kernel. Debian's trace-cmd
//! has no zlib: that file is the one with zstd, with every piece packed anew.

use crate::support::{data, parsed, random, recorded, strip};
use crate::trace_damage::given;
use std::collections::HashSet;
use tickless_core::time::Ns;
use tickless_trace::Trace;
use tickless_trace::read::{Cause, EventKind, Family, Record, TimerAddr};
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

/// The events of a trace, with the names of their functions in place of ids.
fn events(trace: &Trace) -> Vec<(Record, String)> {
    let name = |mut record: Record| trace.names.name(strip(&mut record)).to_string();
    trace.records.iter().map(|record| (*record, name(*record))).collect()
}

fn summary(trace: &Trace) -> serde_json::Value {
    let summary = summarise(trace, &ReplayPolicy::DEFAULT, Inference::On);
    let mut json = serde_json::to_value(&summary).unwrap();
    json["trace"]["file"].take();
    json["trace"]["kernel"].take();
    json
}

/// Goal: every form of a file has the same events and the same replay as its text. Method: the
/// text lacks which timers are deferrable, and is otherwise equal.
#[test]
fn recordings_are_what_their_text_says() {
    let text = recorded("version-6.txt.gz");
    assert_eq!(text.records.len(), 966);
    for name in ["version-6.dat.gz", "version-7-zstd.dat", "version-7-zlib.dat.gz"] {
        let dat = recorded(name);
        assert_eq!(dat.header.kernel.as_deref(), Some("6.12.117+deb13-cloud-amd64"), "{name}");
        assert_eq!((dat.cpus, dat.gaps.len(), dat.problems.iter().count()), (2, 0, 0), "{name}");
        let (dat_events, text_events) = (events(&dat), events(&text));
        assert_eq!(dat_events.len(), text_events.len(), "{name}");
        for ((one, name), (other, other_name)) in dat_events.iter().zip(&text_events) {
            assert_eq!((one.time, one.cpu, one.pid), (other.time, other.cpu, other.pid));
            assert_eq!((one.event.kind(), one.event.timer(), name), {
                (other.event.kind(), other.event.timer(), other_name)
            });
        }
        assert_eq!(summary(&dat)["policies"], summary(&text)["policies"], "{name}");
        assert_eq!(summary(&dat)["operations"], summary(&text)["operations"], "{name}");
    }
}

/// Goal: a file is read alike where it is, through a pipe, and if its events are of an instance;
/// one that was cut has a gap at its end.
#[test]
fn files_are_read_as_a_whole_or_have_a_gap() {
    let file = data("version-6.dat.gz");
    let find = |word: &[u8]| file.windows(word.len()).position(|at| at == word).unwrap();
    let (options, table) = (find(b"options  \0") + 10, find(b"flyrecord\0"));
    // A copy for which the disk had no room often ends with a whole page.
    for pages in 1..9 {
        let trace = parsed(&file[..file.len() - 4096 * pages]);
        assert!(trace.problems.find(&Cause::PagesDamaged).is_some(), "{pages}");
        assert_eq!(trace.gaps.last().unwrap().record, trace.records.len(), "{pages}");
    }
    // The table goes to the end, and an option with its place comes before all others.
    let place = (file.len() + 17).to_le_bytes();
    let option = [&[3, 0, 11, 0, 0, 0], &place[..], b"ia\0"].concat();
    let mut instance = [&file[..options], &option, &file[options..]].concat();
    let from = instance.len();
    instance.extend_from_slice(&file[table..table + 42]);
    for at in [from + 10, from + 26] {
        let moved = u64::from_le_bytes(instance[at..at + 8].try_into().unwrap()) + 17;
        instance[at..at + 8].copy_from_slice(&moved.to_le_bytes());
    }
    instance[17 + table + 10..][..32].fill(0);
    let wanted = events(&recorded("version-6.dat.gz"));
    for content in [file, instance] {
        let place = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(place.path(), &content).unwrap();
        for trace in [Trace::read(place.path()).unwrap(), parsed(&content)] {
            assert!(events(&trace) == wanted);
        }
    }
}

/// The kernel prints other addresses, and times in microseconds.
#[test]
fn a_recording_is_what_the_kernel_prints() {
    let (dat, text) = (recorded("kernel-recorded.dat.gz"), recorded("kernel-recorded.txt.gz"));
    assert_eq!(dat.records.len(), text.records.len());
    for ((one, name), (other, other_name)) in events(&dat).iter().zip(&events(&text)) {
        assert!(one.time.0.abs_diff(other.time.0) <= 500, "{one:?} {other:?}");
        assert_eq!((one.event.kind(), one.cpu, name), (other.event.kind(), other.cpu, other_name));
        assert_eq!((one.context, one.pid), (other.context, other.pid), "{one:?}");
    }
    assert_eq!(summary(&dat)["operations"], summary(&text)["operations"]);
}

type Fact = (Ns, EventKind, Option<(Family, TimerAddr)>);

/// Goal: damage gives an error, or a part of the trace with a gap. Method: pieces of the records
/// are overwritten or cut out, and single bits changed. What is read must be among the events of
/// the whole file, but for the one that damage begins or ends in. In a page of a trace.dat, what
/// follows a changed or missing time has another time.
#[test]
fn damaged_recordings_have_gaps() {
    let mut state = given("TICKLESS_SEED").unwrap_or(7);
    for (name, start, end) in
        [("version-6.dat.gz", -9 * 4096, 0), ("perf-6.12.data.gz", 2_824, -24_638)]
    {
        let file = data(name);
        let size = file.len() as i64;
        let [start, end] = [start, end].map(|at| (at as i64).rem_euclid(size) as usize);
        let records = start..if end == 0 { file.len() } else { end };
        let whole = facts(&parsed(&file));
        let known: HashSet<Fact> = whole.iter().copied().collect();
        // A page has so many events.
        const PAGE: usize = 4096 / 28;
        for round in 0..1_500 {
            let mut damaged = file.clone();
            let at = records.start + random(&mut state) as usize % records.len();
            let to = records.end.min(at + 1 + random(&mut state) as usize % 4096);
            match round % 4 {
                0 => damaged[at..to].fill(0xff),
                1 => damaged[at..to].fill(0),
                2 => drop(damaged.drain(at..to)),
                _ => damaged[at] ^= 1 << (random(&mut state) % 8),
            }
            let Ok(trace) = Trace::parse("t", &damaged[..]) else { continue };
            let found = facts(&trace);
            let strange = found.iter().filter(|fact| !known.contains(fact)).count();
            let is_told = trace.problems.damage().next().is_some() && !trace.gaps.is_empty();
            let most = if name.contains(".dat") && (is_told || round % 4 == 3) { PAGE } else { 2 };
            assert!(strange <= most, "{name}, round {round}, {at}..{to}: {strange}");
            let lacks = found.len() < whole.len();
            // A changed bit can make an event another record, or move it by hours.
            let is_noted = trace.problems.iter().any(|it| it.cause != Cause::NamesNotRecorded);
            let is_told = is_told || round % 4 == 3 && is_noted;
            assert!(is_told || !lacks, "{name}, round {round}, {at}..{to}: {:?}", trace.problems);
        }
        for _ in 0..300 {
            let mut damaged = file.clone();
            let at = random(&mut state) as usize % file.len();
            damaged[at] ^= 1 << (random(&mut state) % 8);
            // It is read or refused.
            let _ = Trace::parse("t", &damaged[..]);
            let _ = Trace::parse("t", &file[..at]);
        }
    }
}

fn facts(trace: &Trace) -> Vec<Fact> {
    let records = trace.records.iter();
    records.map(|it| (it.time, it.event.kind(), it.event.timer())).collect()
}
