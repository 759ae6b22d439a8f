//! Damaged traces: a message shows file, line and cause, and the rest is used.

use crate::support::{SAMPLES, all, data, parsed, random, sample_text};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use tickless_trace::read::{Cause, EventKind, Jiffy, Trace, TraceError, Unusable};
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

const HEADER: &str = "# tracer: nop\n";
const EVENT: &str = " a-1 [000] d.h1.  1.000001: hrtimer_cancel: hrtimer=00000000deadbeef\n";

fn parse(text: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
    Trace::parse("t.txt", text.as_ref())
}

#[test]
fn causes_are_reported_with_their_lines() {
    let cut = " a-1 [000] d.h1.  1.000002: hrtimer_expire_entry: hrtimer=1 now=30285";
    let dropped = |events| Cause::EventsDropped { events };
    for (text, cause, line, count, dropped) in [
        (EVENT.to_string(), Cause::NoHeader, 0, 1, 0),
        // A number that may have been cut is not used, even if it can be read.
        (format!("{HEADER}{EVENT}{cut}"), Cause::LastLineCut, 3, 1, 0),
        // Lines may end as on other systems.
        (format!("cpus=2\r\n{EVENT}CPU:1 [EVENTS DROPPED]\r\n{EVENT}"), dropped(0), 3, 1, 0),
        // The longest line that is read, and a longer one.
        (format!("{HEADER}{EVENT}{}\n{EVENT}", "x".repeat(65_535)), Cause::NotAnEvent, 3, 1, 0),
        (format!("{HEADER}{EVENT}{}\n{EVENT}", "x".repeat(200_000)), Cause::LineTooLong, 3, 1, 0),
    ] {
        let trace = parsed(&text);
        let found = trace.problems.iter().find(|problem| problem.cause == cause);
        let found = found.map(|problem| (problem.line, problem.count));
        assert_eq!(found, Some((line, count)), "{text}: {:?}", trace.problems);
        assert_eq!(trace.dropped_events, dropped, "{text}");
        assert_eq!(trace.count(EventKind::HrtimerExpireEntry), 0, "{text}");
    }
}

#[test]
fn invalid_utf8_leaves_the_event_usable() {
    let mut text = format!("{HEADER}{EVENT}").into_bytes();
    text.extend(b" \x1b\xff-9 [000] d.h1.  1.000002: hrtimer_start: hrtimer=1 function=\xff");
    text.extend(b" expires=7 softexpires=7\n");
    let trace = parsed(&text);
    assert_eq!(trace.records.len(), 2);
    assert!(trace.names.find("?").is_none());
    // A terminal would obey the first of these characters.
    assert_eq!(&*trace.tasks[&9], "\u{fffd}\u{fffd}");
    assert_eq!(trace.problems.find(&Cause::NotUtf8).unwrap().line, 3);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Returns events that compress little, so that half a file holds about half of them.
fn many_events() -> String {
    let mut state = 1;
    let mut event = |at: u32| {
        let timer = random(&mut state);
        format!(" a-1 [000] d.h1.  1.{at:06}: timer_init: timer={timer:016x}\n")
    };
    HEADER.to_owned() + &(0..20_000).map(&mut event).collect::<String>()
}

#[test]
fn a_damaged_gzip_is_used_up_to_the_damage() {
    let mut packed = gzip(many_events().as_bytes());
    assert_eq!(parsed(&packed).records.len(), 20_000);
    let trace = parsed(&packed[..packed.len() / 2]);
    assert!((8_000..12_000).contains(&trace.records.len()), "{}", trace.records.len());
    assert!(trace.problems.find(&Cause::GzipCut).is_some(), "{:?}", trace.problems);
    assert!(trace.messages().any(|message| message.contains("gzip data ends early")));

    let middle = packed.len() / 2;
    packed[middle..middle + 64].fill(0xff);
    let trace = parsed(&packed);
    assert!(trace.records.len() > 8_000);
    assert!(trace.problems.find(&Cause::GzipDamaged).is_some(), "{:?}", trace.problems);

    let two = [gzip(format!("{HEADER}{EVENT}").as_bytes()), gzip(EVENT.as_bytes())].concat();
    assert_eq!(parsed(&two).records.len(), 2);
    let trailing = parsed([&two[..], b"rubbish behind it"].concat());
    assert_eq!(trailing.records.len(), 2);
    assert!(trailing.problems.find(&Cause::GzipDamaged).is_some());
}

#[test]
fn errors_advise_the_user() {
    let unopened = Trace::read("/nonexistent/trace.txt".as_ref()).unwrap_err().to_string();
    assert!(unopened.contains("/nonexistent/trace.txt: cannot be opened"), "{unopened}");
    let directory = Trace::read(env!("CARGO_MANIFEST_DIR").as_ref()).unwrap_err();
    assert!(matches!(directory.why, Unusable::Read(_)), "{directory:?}");

    let broken = parse(&gzip(many_events().as_bytes())[..12]).unwrap_err();
    assert!(matches!(broken.why, Unusable::BrokenGzip(_)), "{broken:?}");
    let mut tar = vec![b'a'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    for (text, want) in [
        (&b""[..], "empty. Record a trace"),
        (b"\x17\x08\x44tracing6", "the beginning of the trace.dat cannot be read"),
        (b"\x17\x08\x44tracing8\0\0\x08\0\x10\0\0", "version 8; 6 and 7 are read"),
        (b"\x17\x08\x44tracing6\0\x01\x08\0\x10\0\0", "another byte order"),
        (
            b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0header_",
            "the format of a page of the trace.dat cannot be read",
        ),
        (b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lz4\x001\0", "neither zlib nor zstd"),
        (b"PERFILE2\0\0\0", "the beginning of the perf.data cannot be read"),
        (b"2ELIFREP\0", "another byte order. Turn it into text first: perf script"),
        (b"\x28\xb5\x2f\xfd....", "compressed with zstd. Turn it into text first: zstd -dc"),
        (b"\xfd7zXZ\0......", "compressed with xz. Turn it into text first: xz -dc"),
        (b"\x7fELF\x02\x01\x01\0\0\0\n", "not text. Give ftrace's"),
        (&tar, "a tar archive of several files"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with("t.txt: ") && error.contains(want), "{error}");
    }
}

struct BreaksOff<'a>(&'a [u8]);

impl Read for BreaksOff<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the disk is gone"));
        }
        self.0.read(buffer)
    }
}

#[test]
fn lines_before_a_read_error_are_used() {
    let text = format!("{HEADER}{EVENT}{EVENT}");
    let trace = Trace::parse("t.txt", BreaksOff(text.as_bytes())).unwrap();
    assert_eq!(trace.records.len(), 2);
    assert!(trace.problems.find(&Cause::ReadFailed).is_some());
    let error = Trace::parse("t.txt", BreaksOff(HEADER.as_bytes())).unwrap_err();
    assert!(matches!(error.why, Unusable::Read(_)));
}

/// Numbers near the ends of 32 and 64 bits as often as others.
fn extreme() -> impl Strategy<Value = u64> {
    let near = |place: u64| (0u64..3).prop_map(move |step| place.wrapping_add(step));
    prop_oneof![
        any::<u64>(),
        near(0),
        near(u64::from(u32::MAX) - 1),
        near(i64::MAX as u64 - 1),
        near(u64::MAX - 1),
    ]
}

/// A random seed, or that of `TICKLESS_SEED`, which a failure shows.
pub fn random_seed(test: &str) -> u64 {
    let seed = given("TICKLESS_SEED").unwrap_or_else(|| RandomState::new().hash_one(test));
    println!("replay: TICKLESS_SEED={seed} cargo test -p tickless-trace --test all {test}::");
    seed
}

pub fn given(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

pub fn seeded(test: &str, cases: u32) -> ProptestConfig {
    let seed = random_seed(test);
    let cases = given("PROPTEST_CASES").map_or(cases, |cases| cases as u32);
    let rng_seed = RngSeed::Fixed(seed);
    ProptestConfig { failure_persistence: None, rng_seed, cases, ..ProptestConfig::default() }
}

/// Texts of each tool, and 300 lines of each committed recording.
fn files() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> =
        ["trace-cmd.txt", "trace-cmd-2.txt", "perf.txt"].map(data).to_vec();
    for (name, from) in SAMPLES.into_iter().zip([1_000, 3_000, 12, 700, 4_000]) {
        let text = sample_text(name);
        let lines: Vec<&str> = text.lines().skip(from).take(300).collect();
        let head = format!("{HEADER}# HZ=250\n{EVENT}");
        files.push((head + &lines.join("\n") + "\n").into_bytes());
    }
    files
}

/// Cuts out, overwrites, repeats or cuts off a piece of a file, or changes a digit.
fn damage(file: &mut Vec<u8>, state: &mut u64) {
    let mut below = |limit: usize| random(state) as usize % limit.max(1);
    let at = below(file.len());
    let to = file.len().min(at + below(400));
    match below(20) {
        0 => file.truncate(at),
        1..=5 => drop(file.drain(at..to)),
        6..=9 => file[at..to].iter_mut().take(40).for_each(|byte| *byte = below(256) as u8),
        10..=13 => file.extend_from_within(at..to),
        _ => {
            let digit = file[at..].iter_mut().find(|byte| byte.is_ascii_digit());
            digit.into_iter().for_each(|digit| *digit = b'0' + below(10) as u8);
        }
    }
}

/// Goal: a damaged text is read or refused, and replayed without a timer that fires early.
#[test]
fn damaged_files_are_read_and_replayed() {
    let mut state = random_seed("trace_damage");
    let files = files();
    for round in 0..200 {
        let mut file = files[round % files.len()].clone();
        (0..random(&mut state) % 20).for_each(|_| damage(&mut file, &mut state));
        if random(&mut state).is_multiple_of(2) {
            file = gzip(&file);
            (0..random(&mut state) % 5).for_each(|_| damage(&mut file, &mut state));
        }
        match parse(&file) {
            Ok(trace) => {
                assert!(trace.records.is_sorted_by_key(|record| record.time));
                assert!(trace.records.iter().all(|record| record.cpu.0 < trace.cpus));
                for message in trace.messages() {
                    assert!(message.starts_with("t.txt"), "{message}");
                    assert!(!message.contains(char::is_control), "{message:?}");
                }
                for inference in [Inference::On, Inference::Off] {
                    let summary = summarise(&trace, &ReplayPolicy::DEFAULT, inference);
                    assert_eq!(all(&summary, |result| result.early), [0; 3]);
                }
            }
            Err(error) => assert!(error.to_string().starts_with("t.txt: ")),
        }
    }
}

proptest! {
    #![proptest_config(seeded("trace_damage", 200))]

    #[test]
    fn extreme_numbers_never_panic(
        events in prop::collection::vec((extreme(), extreme(), extreme(), extreme()), 1..12),
        hz in prop_oneof![Just(""), Just("# HZ=1\n"), Just("# HZ=10000\n")],
    ) {
        let mut text = format!("{hz}{HEADER}{EVENT}");
        for (time, one, other, third) in events {
            let time = time / 1_000_000_000;
            let timeout = other as i64;
            text += &format!(
                "a-1 [000] {time}.5: timer_start: timer=1 expires={one} [timeout={timeout}]\n\
                 a-1 [000] {time}.5: timer_expire_entry: timer=1 now={third}\n\
                 a-1 [000] {time}.5: hrtimer_start: hrtimer=1 function=tick_nohz_handler \
                 expires={other}\n\
                 a-1 [000] {time}.5: hrtimer_expire_entry: hrtimer=1 function=tick_nohz_handler \
                 now={one}\n",
            );
        }
        let trace = parse(&text).unwrap();
        prop_assert_eq!(trace.skipped_lines, 0, "{:?}", trace.problems);
        for number in [0, 1, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
            let _ = trace.jiffies.map(|clock| clock.time(Jiffy(number)));
        }
    }
}
