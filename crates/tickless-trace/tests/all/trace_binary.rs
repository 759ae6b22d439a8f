//! `trace.dat` and `perf.data`, against the text that trace-cmd and perf print of the same files.

use crate::support::{data, data_path, replay, sample_path};
use tickless_trace::Trace;
use tickless_trace::read::{Cause, Context, Event, EventKind, Record};
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

fn read(name: &str) -> Trace {
    Trace::read(&data_path(name)).unwrap()
}

/// Removes what the tools do not print, or print wrongly: the context, whether
/// the timer was pending, and whether a coarse timer is deferrable (which they print for all
/// timers).
fn as_printed(mut record: Record) -> Record {
    record.context = Context::NotRecorded;
    match &mut record.event {
        Event::TimerStart { is_deferrable, .. } => *is_deferrable = false,
        Event::HrtimerStart { was_armed, .. } => *was_armed = None,
        _ => {}
    }
    record
}

/// Formats a record without its line, and with names for their numbers.
fn plain(trace: &Trace, record: Record) -> String {
    let record = as_printed(record);
    let Record { time, event, cpu, pid, .. } = record;
    let function = match event {
        Event::TimerStart { function, .. }
        | Event::TimerExpireEntry { function, .. }
        | Event::HrtimerStart { function, .. }
        | Event::HrtimerExpireEntry { function, .. } => trace.names.name(function),
        _ => "",
    };
    let event = format!("{event:?}");
    let event = event.split("NameId(").map(|part| part.trim_start_matches(char::is_numeric));
    format!("{time:?} {cpu:?} {pid} {function} {}", event.collect::<String>())
}

fn assert_same(one: &Trace, other: &Trace) {
    assert_eq!(one.records.len(), other.records.len());
    for (a, b) in one.records.iter().zip(other.records.iter()) {
        assert_eq!(plain(one, a), plain(other, b), "line {}", b.line);
    }
    assert_eq!((one.cpus, one.dropped_events), (other.cpus, other.dropped_events));
    assert_eq!(one.hz, other.hz);
}

/// Returns the results of a replay, without the file's name and the functions.
fn results(trace: &Trace) -> String {
    let summary = summarise(trace, &ReplayPolicy::DEFAULT, Inference::On);
    format!("{:?} {:?}", summary.policies, summary.operations)
}

#[test]
fn trace_dat_reads_like_the_text_of_trace_cmd() {
    let text = read("trace-cmd.dat.txt.gz");
    for file in ["trace-cmd-6.dat.gz", "trace-cmd-7.dat"] {
        let trace = read(file);
        assert_same(&trace, &text);
        assert!(trace.records.iter().any(|record| record.context == Context::HardIrq), "{file}");
        assert!(trace.names.find("tick_nohz_handler").is_some(), "{file}");
        assert_eq!(trace.problems.iter().count(), 0, "{file}: {:?}", trace.problems);
        let mut printed = trace;
        printed.records = printed.records.iter().map(as_printed).collect();
        let mut text = read("trace-cmd.dat.txt.gz");
        text.records = text.records.iter().map(as_printed).collect();
        assert_eq!(results(&printed), results(&text), "{file}");
    }
}

#[test]
fn perf_data_reads_like_the_text_of_perf() {
    let text = read("perf.data.txt.gz");
    let trace = read("perf.data.gz");
    assert_eq!(trace.records.len(), text.records.len());
    let is_named = trace.problems.find(&Cause::NoFunctionNames).is_none();
    for (a, b) in trace.records.iter().zip(text.records.iter()) {
        let [a, b] = [plain(&trace, a), plain(&text, b)].map(|one| match is_named {
            true => one,
            false => {
                one.split(' ').enumerate().filter(|(at, _)| *at != 3).map(|(_, w)| w).collect()
            }
        });
        assert_eq!(a, b);
    }
    assert_eq!((trace.cpus, &trace.header.kernel), (text.cpus, &text.header.kernel));
    assert_eq!(trace.count(EventKind::HrtimerStart), text.count(EventKind::HrtimerStart));
}

/// Goal: the first part of a cut file is used: a version 6 file has the CPUs' pages at its end.
#[test]
fn a_cut_file_is_used() {
    let whole = data("trace-cmd-6.dat.gz");
    let cut = Trace::parse("t", &whole[..whole.len() - 20_000]).unwrap();
    let all = Trace::parse("t", &whole[..]).unwrap();
    assert!(cut.records.len() > all.records.len() / 2 && cut.records.len() < all.records.len());
    // Text reads alike from a string and from a file.
    let text = replay(&crate::support::sample_text("idle"));
    let file = Trace::read(&sample_path("idle")).unwrap();
    let file = summarise(&file, &ReplayPolicy::DEFAULT, Inference::On);
    assert_eq!(format!("{:?}", text.policies), format!("{:?}", file.policies));
}

fn place_of(bytes: &[u8], wanted: &[u8]) -> usize {
    let mut places = bytes.windows(wanted.len()).enumerate();
    let (place, _) = places.find(|(_, there)| *there == wanted).unwrap();
    assert!(places.all(|(_, there)| there != wanted), "it is there twice");
    place
}

/// Adds an instance with the pages of the top buffer to a file of version 6.
fn with_instance_6(mut file: Vec<u8>) -> Vec<u8> {
    let options = place_of(&file, b"options  \0") + 10;
    let option = [&[3, 0, 10, 0, 0, 0][..], &(file.len() as u64).to_le_bytes(), b"i\0"].concat();
    let top = place_of(&file, b"flyrecord\0");
    let table = file[top..top + 10 + 2 * 16].to_vec();
    // Zeroes between the options and the first page make room, so that the page does not move.
    let page = u64::from_le_bytes(table[10..18].try_into().unwrap()) as usize;
    assert!(file.drain(page - option.len()..page).all(|byte| byte == 0));
    file.splice(options..options, option);
    [file, table].concat()
}

/// Adds an instance with the pages of the top buffer to a file of version 7.
fn with_instance_7(mut file: Vec<u8>) -> Vec<u8> {
    let number = |file: &[u8], at: usize, length: usize| {
        let mut word = [0; 8];
        word[..length].copy_from_slice(&file[at..at + length]);
        u64::from_le_bytes(word) as usize
    };
    // The offset of the first options follows the compression and its version.
    let compression = place_of(&file, b"zstd\0");
    let version = compression + 5;
    let mut at = version + file[version..].iter().position(|&byte| byte == 0).unwrap() + 1;
    let mut buffer = None;
    loop {
        at = number(&file, at, 8) + 16;
        while number(&file, at, 2) != 0 {
            let end = at + 6 + number(&file, at + 2, 4);
            if number(&file, at, 2) == 3 {
                buffer = Some(at..end);
            }
            at = end;
        }
        at += 6;
        if number(&file, at, 8) == 0 {
            break;
        }
    }
    // A further list of options, which repeats this buffer.
    let more = file.len() as u64;
    file[at..at + 8].copy_from_slice(&more.to_le_bytes());
    let buffer = buffer.unwrap();
    file.extend([0; 8]);
    file.extend((buffer.len() as u64 + 14).to_le_bytes());
    file.extend_from_within(buffer);
    file.extend([0, 0, 8, 0, 0, 0]);
    file.extend([0; 8]);
    file
}

#[test]
fn instances_are_read_too() {
    type Adds = fn(Vec<u8>) -> Vec<u8>;
    let files: [(&str, Adds); 2] =
        [("trace-cmd-6.dat.gz", with_instance_6), ("trace-cmd-7.dat", with_instance_7)];
    for (file, with_instance) in files {
        let alone = Trace::parse("t", &data(file)[..]).unwrap();
        let both = Trace::parse("t", &with_instance(data(file))[..]).unwrap();
        assert_eq!(both.cpus, alone.cpus, "{file}");
        for kind in [EventKind::HrtimerStart, EventKind::TimerStart] {
            assert!(alone.count(kind) > 0);
            assert_eq!(both.count(kind), 2 * alone.count(kind), "{file}: {kind:?}");
        }
    }
}
