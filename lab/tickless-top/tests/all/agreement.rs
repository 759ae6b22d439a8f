//! Compares the counts of the eBPF programs with a recording of the same load, on this kernel.

use rustix::thread::{
    CpuSet, clock_nanosleep_absolute, gettid, sched_getaffinity, sched_setaffinity,
};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tickless_core::time::CpuId;
use tickless_top::Ebpf;
use tickless_top::snapshot::{Counts, Snapshot};
use tickless_top::table::{By, Sort, TableRow, between};
use tickless_trace::Trace;
use tickless_trace::read::{Context, Event, NameId, Record, TimerAddr};
use tickless_trace::record::{Options, Recording, Tracefs};

use crate::skip::skip;

/// One test runs at a time, because the comparison includes all CPUs.
pub static TURN: Mutex<()> = Mutex::new(());

/// The threads of this process that have run.
static THREADS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Starts the programs; none, after a message, without the right to.
fn counting() -> Option<Ebpf> {
    Ebpf::start().map_err(skip).ok()
}

fn note_this_thread() {
    THREADS.lock().unwrap().push(gettid().as_raw_pid().cast_unsigned());
}

/// Some hundreds or thousands of timers of each kind: sleeps that end by themselves, waits that are
/// interrupted, and a connection, whose retransmission timer each message pushes out.
fn load() {
    note_this_thread();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let talker = thread::spawn(move || {
        note_this_thread();
        let mut byte = [0];
        for _ in 0..400 {
            client.write_all(&byte).unwrap();
            server.read_exact(&mut byte).unwrap();
            // A timer that stays in its bucket is not rearmed.
            thread::sleep(Duration::from_millis(5));
        }
    });
    let sleeper = thread::spawn(|| {
        note_this_thread();
        for _ in 0..1_000 {
            thread::sleep(Duration::from_micros(1_000));
        }
    });
    let (ask, asked) = channel::<()>();
    let (answer, answered) = channel::<()>();
    let waiter = thread::spawn(move || {
        note_this_thread();
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

/// What is counted of a timer: its callback, whether it counts here, whether it is pending.
#[derive(Clone, Copy)]
struct Timer {
    function: NameId,
    is_mine: bool,
    is_pending: bool,
}

/// Counts the events of a recording by the rules of the crate: those of this process, whose threads
/// are `mine`, and the idle wakeups and device writes of all.
struct Oracle<'a> {
    trace: &'a Trace,
    mine: HashSet<u32>,
    timers: HashMap<TimerAddr, Timer>,
    /// For each CPU, the timer that its last timer event removed.
    removed: HashMap<CpuId, TimerAddr>,
    woken: HashSet<CpuId>,
    counts: Counts,
}

impl Oracle<'_> {
    fn count(trace: &Trace, mine: HashSet<u32>) -> Counts {
        let (timers, removed, woken) = (HashMap::new(), HashMap::new(), HashSet::new());
        let mut oracle = Oracle { trace, mine, timers, removed, woken, counts: Counts::default() };
        trace.records.iter().for_each(|record| oracle.event(record));
        oracle.counts
    }

    fn event(&mut self, record: &Record) {
        match record.event {
            Event::TimerStart { timer, function, .. }
            | Event::HrtimerStart { timer, function, .. } => self.armed(record, timer, function),
            Event::TimerCancel { timer } | Event::HrtimerCancel { timer } => {
                self.removed.remove(&record.cpu);
                let Some(known) = self.timers.get_mut(&timer) else { return };
                known.is_pending = false;
                self.counts.cancels += u64::from(known.is_mine);
                self.removed.insert(record.cpu, timer);
            }
            Event::TimerExpireEntry { timer, function, .. } => {
                self.expired(record, timer, function)
            }
            Event::HrtimerExpireEntry { timer, function, .. } => {
                self.counts.idle_wakeups += u64::from(self.woken.remove(&record.cpu));
                self.expired(record, timer, function);
            }
            Event::LocalTimerEntry if record.pid == 0 => drop(self.woken.insert(record.cpu)),
            Event::LocalTimerEntry => drop(self.woken.remove(&record.cpu)),
            _ => self.counts.device_writes += u64::from(record.event.is_device_write()),
        }
    }

    fn armed(&mut self, record: &Record, timer: TimerAddr, function: NameId) {
        let known = self.timers.get(&timer).filter(|known| known.function == function);
        let names = &self.trace.names;
        let is_kernels = names.find("dl_task_timer") == Some(function)
            || names.tick_functions().contains(&Some(function));
        let is_mine = if is_kernels {
            false
        } else if record.context == Context::Task && record.pid != 0 {
            self.mine.contains(&record.pid)
        } else {
            known.is_some_and(|known| known.is_mine)
        };
        let is_half = self.removed.remove(&record.cpu) == Some(timer);
        let is_rearm = is_half || known.is_some_and(|known| known.is_pending);
        self.counts.arms += u64::from(is_mine);
        self.counts.rearms += u64::from(is_mine && is_rearm);
        self.counts.halves += u64::from(is_mine && is_half);
        self.timers.insert(timer, Timer { function, is_mine, is_pending: true });
    }

    fn expired(&mut self, record: &Record, timer: TimerAddr, function: NameId) {
        let is_half = self.removed.remove(&record.cpu) == Some(timer);
        let known = self.timers.get_mut(&timer).filter(|known| known.function == function);
        let Some(known) = known else { return };
        known.is_pending = false;
        self.counts.expiries += u64::from(known.is_mine);
        self.counts.halves += u64::from(known.is_mine && is_half);
    }
}

/// Returns whether a count of a recording agrees within 2 % with what eBPF counted: at least in the
/// shorter, and at most in the longer of two spans.
fn agrees(what: &str, recorded: u64, [least, most]: [u64; 2]) -> bool {
    let range = (least * 98 / 100).saturating_sub(2)..=most * 102 / 100 + 2;
    if !range.contains(&recorded) {
        eprintln!("{what}: {recorded} were recorded, {least} to {most} counted");
    }
    range.contains(&recorded)
}

/// Goal: the programs count a load as its recording shows it, within 2 %. Method: both run at once,
/// so that they see the same events, on one CPU after the other. Other processes run while a
/// snapshot is taken: the recording may have anything from what eBPF counts in the shorter of two
/// spans to what it counts in the longer. A busy machine may disturb a comparison, so one of ten on
/// a CPU must agree in all but the device writes, and one of all in these. Some kernels record
/// nothing of a CPU's idle thread, which writes to the device, and whose removals of timers show
/// which armings are re-armings: then the recording may have fewer of these two, but not more.
#[test]
fn counts_agree_with_a_recording() {
    let _turn = TURN.lock();
    let Some(mut ebpf) = counting() else { return };
    let allowed = sched_getaffinity(None).unwrap();
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let mut writes_agree = false;
    for &cpu in cpus.iter().take(4) {
        let mut rest_agrees = false;
        for _ in 0..10 {
            let prepare = |tracefs| Recording::prepare(tracefs, &Options::default(), None);
            let recording = Tracefs::find().and_then(prepare).map_err(skip);
            let Ok(recording) = recording else { return };
            let (rest, writes) = compare(cpu, &mut ebpf, &recording);
            writes_agree |= writes;
            rest_agrees = rest;
            if rest_agrees {
                break;
            }
        }
        assert!(rest_agrees, "the counts of CPU {cpu} do not agree");
    }
    assert!(writes_agree, "the device writes agree on no CPU");
}

/// Runs the load on a CPU. Returns whether the device writes agree, after whether all else does.
fn compare(cpu: usize, ebpf: &mut Ebpf, recording: &Recording) -> (bool, bool) {
    let early = ebpf.snapshot().unwrap();
    recording.start().unwrap();
    let from = ebpf.snapshot().unwrap();
    let loads = thread::spawn(move || {
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        sched_setaffinity(None, &cpus).unwrap();
        load();
    });
    loads.join().unwrap();
    let to = ebpf.snapshot().unwrap();
    recording.stop().unwrap();
    let last = ebpf.snapshot().unwrap();
    assert_eq!((last.refused, recording.statistics().dropped), (0, 0));
    let trace = recording.trace("t", "a load").unwrap();
    let unseen: Vec<_> = trace.messages().filter(|it| it.contains("'s idle thread")).collect();
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let running = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    let mine = running.chain(THREADS.lock().unwrap().drain(..)).collect();
    let recorded = Oracle::count(&trace, mine);
    let spans = [(&from, &to), (&early, &last)];
    let counted = |is_meant: fn(u32) -> bool, figure: fn(&Counts) -> u64| {
        spans.map(|(from, to)| figure(&of(is_meant, from, to)))
    };
    let mine = |figure| counted(|pid| pid == std::process::id(), figure);
    let all = |figure| counted(|_| true, figure);
    // What the idle threads did is missing then, so there may be fewer, but never more.
    let seen = |[least, most]: [u64; 2]| [if unseen.is_empty() { least } else { 0 }, most];
    let rest = [
        agrees("arms", recorded.arms, mine(|it| it.arms)),
        agrees("re-armings", recorded.rearms, seen(mine(|it| it.rearms))),
        agrees("cancels", recorded.cancelled(), mine(Counts::cancelled)),
        agrees("expiries", recorded.expiries, mine(|it| it.expiries)),
        agrees("idle wakeups", recorded.idle_wakeups, all(|it| it.idle_wakeups)),
    ];
    let writes = agrees("device writes", recorded.device_writes, seen(all(|it| it.device_writes)));
    if !unseen.is_empty() {
        eprintln!("the kernel recorded nothing of idle threads: {unseen:?}");
    }
    assert!(recorded.arms > 2_000 && recorded.rearms > 100 && recorded.expiries >= 1_000);
    (rest == [true; 5], writes)
}

/// Goal: what the kernel does not show is told, and counts as nothing else. Some kernels show no
/// events while certain threads run, not even that of an interrupt. Method: the programs that see
/// threads change and sleeps end are detached.
#[test]
fn what_is_not_seen_is_told() {
    const SLEEPS: u64 = 1_000;
    let _turn = TURN.lock();
    let Some(mut ebpf) = counting() else { return };
    for name in ["sched_switch", "hrtimer_cancel", "hrtimer_expire_entry"] {
        ebpf.detach(name).unwrap();
    }
    let before = ebpf.snapshot().unwrap();
    (0..SLEEPS).for_each(|_| thread::sleep(Duration::from_micros(50)));
    let after = ebpf.snapshot().unwrap();
    let table = between(&before, &after, By::Callback);
    let pid = std::process::id();
    let is_mine = |row: &&TableRow| row.pid == pid && row.main_function == "hrtimer_wakeup";
    let mine = table.rows.iter().find(is_mine).unwrap();
    assert_eq!((mine.rearms, mine.expiries, mine.cancels), (0, 0, 0), "{mine:?}");
    // The end of a sleep is missed when the next one has its timer at the same place of the stack.
    // Linux draws the place, from 64 or so.
    assert!((SLEEPS * 4 / 5..=mine.arms).contains(&mine.unseen), "{mine:?}");
    assert!(table.unseen_percent > 0.0 && !table.unseen_after.is_empty(), "{table:?}");
}

#[test]
fn a_sleeper_has_a_period() {
    const PERIOD_NS: i64 = 2_000_000;
    let _turn = TURN.lock();
    let Some(mut source) = counting() else { return };
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
    let table = between(&before, &after, By::Callback);
    let mine = std::process::id();
    let rows: Vec<_> = table.rows.iter().filter(|row| row.pid == mine).collect();
    let is_mine = |ns: u64| ns.abs_diff(PERIOD_NS as u64) <= PERIOD_NS as u64 / 32;
    let mut periods = rows.iter().flat_map(|row| &row.periods);
    assert!(periods.any(|period| is_mine(period.period_ns)), "{table:?}");
    // A sleep until a time of the clock is armed at most a period ahead.
    let sleeps = rows.iter().find(|row| row.function.as_deref() == Some("hrtimer_wakeup"));
    let distance = sleeps.and_then(|row| row.distance_ns);
    assert!(distance.is_some_and(|ns| ns <= PERIOD_NS as u64 && ns > 0), "{distance:?}");
}

/// Returns how long this process ran, and how often its threads left a CPU, as `/proc` has it.
fn of_proc() -> (f64, u64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let switches = status.lines().filter(|line| line.contains("voluntary_ctxt_switches"));
    let count = |line: &str| line.split_whitespace().last().unwrap().parse::<u64>().unwrap();
    (ticks as f64 / 100.0, switches.map(count).sum())
}

/// Goal: CPU time and switches are those of the kernel's own account in `/proc`, and a deadline
/// server's timer is no program's. Method: this thread computes and sleeps while other threads of
/// the test's process wait.
#[test]
fn cpu_time_agrees_with_proc() {
    let _turn = TURN.lock();
    let Some(mut ebpf) = counting() else { return };
    let (before, (cpu_before, switches_before)) = (ebpf.snapshot().unwrap(), of_proc());
    for _ in 0..300 {
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(4) {}
        thread::sleep(Duration::from_micros(200));
    }
    let ((cpu, switches), after) = (of_proc(), ebpf.snapshot().unwrap());
    let (cpu, switches) = (cpu - cpu_before, switches - switches_before);
    let mut table = between(&before, &after, By::Process);
    table.sort(Sort::Cpu);
    let mine = table.rows.iter().find(|row| row.pid == std::process::id()).unwrap();
    // Accounting by ticks of 10 ms, at both ends; a tick may be due where the thread still runs.
    let counted = mine.cpu_ns.unwrap() as f64 / 1e9;
    assert!((counted - cpu).abs() < 0.05 + 0.05 * cpu, "{counted} s counted, {cpu} s in /proc");
    let counted = mine.switches.unwrap();
    assert!(counted.abs_diff(switches) < 20 + switches / 20, "{counted}, {switches} in /proc");
    let deadline = between(&before, &after, By::Callback);
    let mut deadline =
        deadline.rows.iter().filter(|row| row.function.as_deref() == Some("dl_task_timer"));
    assert!(deadline.all(|row| row.pid == 0), "the scheduler's timer counts for a program");
}
