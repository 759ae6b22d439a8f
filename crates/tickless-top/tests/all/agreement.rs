//! Compares the two sources under one load, on this machine's kernel.

use rustix::thread::{CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tickless_top::snapshot::{Counts, Snapshot};
use tickless_top::source::{Choice, Counting, SourceError};
use tickless_top::table::{By, between};

/// One test runs at a time, because the comparison includes all CPUs.
pub static TURN: Mutex<()> = Mutex::new(());

/// Reports why a test did not run, also to the gate.
pub fn skip(test: &str, why: &SourceError) {
    let line = format!("SKIPPED: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("CI_SKIPPED")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        let _ = file.write_all(line.as_bytes());
    }
}

pub fn start(choice: Choice) -> Result<Counting, SourceError> {
    Counting::start(choice, None, &mut |note| eprintln!("{note}"))
}

/// Some hundreds or thousands of timers of each kind: sleeps that end by themselves, waits that are
/// interrupted, and a connection, whose retransmission timer each message pushes out.
fn load() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let talker = thread::spawn(move || {
        let mut byte = [0];
        for _ in 0..400 {
            client.write_all(&byte).unwrap();
            server.read_exact(&mut byte).unwrap();
            // A timer that stays in its bucket is not rearmed.
            thread::sleep(Duration::from_millis(5));
        }
    });
    let sleeper = thread::spawn(|| {
        for _ in 0..1_000 {
            thread::sleep(Duration::from_micros(1_000));
        }
    });
    let (ask, asked) = channel::<()>();
    let (answer, answered) = channel::<()>();
    let waiter = thread::spawn(move || {
        while asked.recv_timeout(Duration::from_secs(100)).is_ok() {
            answer.send(()).unwrap();
        }
    });
    for _ in 0..3_000 {
        ask.send(()).unwrap();
        answered.recv_timeout(Duration::from_secs(100)).unwrap();
    }
    drop(ask);
    waiter.join().unwrap();
    sleeper.join().unwrap();
    talker.join().unwrap();
}

fn of(is_meant: impl Fn(u32) -> bool, before: &Snapshot, after: &Snapshot) -> Counts {
    let old = |at: usize| before.rows.get(at).map_or(Counts::default(), |row| row.counts);
    let rows = after.rows.iter().enumerate().filter(|(_, row)| is_meant(row.pid));
    rows.fold(Counts::default(), |sum, (at, row)| sum.plus(&row.counts.since(&old(at))))
}

/// Takes an eBPF snapshot before and after one of tracefs. eBPF counts in the kernel, so its
/// snapshots are exact in time, and that of tracefs is between the two.
fn around(tracefs: &mut Counting, ebpf: &mut Counting) -> [Snapshot; 3] {
    let before = ebpf.snapshot().unwrap();
    let between = tracefs.snapshot().unwrap();
    [before, between, ebpf.snapshot().unwrap()]
}

/// A count of tracefs, and the smallest and largest count of eBPF.
#[derive(Debug)]
struct Seen {
    what: &'static str,
    tracefs: u64,
    ebpf: [u64; 2],
}

impl Seen {
    /// Returns whether they agree within 2 %; an arming and its end may be in different readings.
    fn agrees(&self) -> bool {
        let [least, most] = self.ebpf;
        let agrees =
            ((least * 98 / 100).saturating_sub(2)..=most * 102 / 100 + 2).contains(&self.tracefs);
        if !agrees {
            eprintln!("{}: {} by tracefs, {least} to {most} by eBPF", self.what, self.tracefs);
        }
        agrees
    }
}

/// Runs the load on one CPU with both sources. Returns the counts of this process, and the device
/// writes that it caused.
fn compare(cpu: usize, tracefs: &mut Counting, ebpf: &mut Counting) -> (Vec<Seen>, Seen) {
    let [early, from, late] = around(tracefs, ebpf);
    // This thread reads the buffers before they are full.
    let loads = thread::spawn(move || {
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        sched_setaffinity(None, &cpus).unwrap();
        load();
    });
    while !loads.is_finished() {
        thread::sleep(Duration::from_millis(50));
        tracefs.poll().unwrap();
        ebpf.poll().unwrap();
    }
    loads.join().unwrap();
    let [first, to, last] = around(tracefs, ebpf);
    assert_eq!([to.lost, last.lost, last.refused], [0; 3]);
    let spans = [(&from, &to), (&late, &first), (&early, &last)];
    let mine = spans.map(|(from, to)| of(|pid| pid == std::process::id(), from, to));
    let seen = |what, figure: &dyn Fn(&Counts) -> u64| {
        let [tracefs, least, most] = mine.each_ref().map(figure);
        Seen { what, tracefs, ebpf: [least, most] }
    };
    // Ticks belong to the idle threads.
    let everybody = spans.map(|(from, to)| of(|pid| pid != 0, from, to));
    let [tracefs, least, most] = everybody.map(|counts| counts.arms + counts.expiries);
    let own = vec![
        Seen { what: "events of all processes", tracefs, ebpf: [least, most] },
        seen("arms", &|counts| counts.arms),
        seen("re-armings", &|counts| counts.rearms),
        seen("cancels", &|counts| counts.cancelled()),
        seen("expiries", &|counts| counts.expiries),
        seen("idle wakeups", &|counts| counts.idle_wakeups),
        seen("distance", &|counts| counts.distances.typical_ns().unwrap_or(0)),
    ];
    let enough = own[1].tracefs > 2_000 && own[2].tracefs > 100 && own[4].tracefs >= 1_000;
    assert!(enough, "{own:?}");
    (own, seen("device writes", &|counts| counts.device_writes))
}

/// Goal: both sources count one load equally within 2 %, and lose nothing. Method: both run at
/// once, so that they see the same events, on one CPU after the other. Other processes run while a
/// snapshot is taken: tracefs may count anything from what eBPF counts in the shorter of two spans
/// to what it counts in the longer.
#[test]
fn both_sources_agree() {
    let _turn = TURN.lock();
    const NAME: &str = "both_sources_agree";
    let (mut tracefs, mut ebpf) = match (start(Choice::Tracefs), start(Choice::Ebpf)) {
        (Ok(tracefs), Ok(ebpf)) => (tracefs, ebpf),
        (Err(error), _) | (_, Err(error)) => return skip(NAME, &error),
    };
    let allowed = sched_getaffinity(None).unwrap();
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let mut writes = Vec::new();
    for &cpu in cpus.iter().take(4) {
        let (own, caused) = compare(cpu, &mut tracefs, &mut ebpf);
        assert!(own.iter().all(Seen::agrees), "CPU {cpu}: {own:?}");
        writes.push(caused);
    }
    assert!(writes.iter().any(Seen::agrees), "{writes:?}");
}

#[test]
fn a_sleeper_has_a_period() {
    const PERIOD_NS: i64 = 2_000_000;
    let _turn = TURN.lock();
    for choice in [Choice::Tracefs, Choice::Ebpf] {
        let mut source = match start(choice) {
            Ok(source) => source,
            Err(error) => return skip("a_sleeper_has_a_period", &error),
        };
        let before = source.snapshot().unwrap();
        // Absolute times keep the period on a busy machine, which makes sleeps late.
        let now = clock_gettime(ClockId::Monotonic);
        for sleep in 1..=200_i64 {
            let ns = now.tv_nsec + sleep * PERIOD_NS;
            let until =
                Timespec { tv_sec: now.tv_sec + ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
            clock_nanosleep_absolute(ClockId::Monotonic, &until).unwrap();
        }
        let after = source.snapshot().unwrap();
        let table = between(&before, &after, By::Callback, source.name());
        let mine = std::process::id();
        let mut periods =
            table.rows.iter().filter(|row| row.pid == mine).flat_map(|row| &row.periods);
        let is_mine = |ns: u64| ns.abs_diff(PERIOD_NS as u64) <= PERIOD_NS as u64 / 32;
        assert!(periods.any(|period| is_mine(period.period_ns)), "{choice:?}: {table:?}");
        assert_eq!(table.lost, 0);
    }
}
