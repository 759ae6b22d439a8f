//! Counts the instructions of the hot operations: exact, where wall time is noisy.
//!
//! `cargo bench -p tickless --bench instructions`, or `ci/benches.sh`; part of a name after `--`
//! selects. Fails if an operation takes over a tenth more than expected. Needs only valgrind;
//! without it, prints a message and passes. (gungraun does this, too, with 24 crates and a runner
//! of its own, whose build takes minutes.) Without `--bench` every operation runs once, so that CI
//! executes the code.
//!
//! The thread-safe types have one base here: under valgrind there are no restartable sequences from
//! which to read the CPU.

// A bench fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::future::pending;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::process::{Command, ExitCode};
use std::task::{Context, Waker};
use std::time::Duration;
use tickless::bandwidth::Limiter;
use tickless::local::future::{Handle, Sleep, Sleeps};
use tickless::local::{Clock, FixedKey, FixedTimeouts, Key, system_clock};
use tickless::time::Instant;
use tickless::{Builder, LocalTimers, Timeout, Timers, VirtualTime};

/// The number of operations over which a figure is averaged.
const OPERATIONS: u64 = 1_000;
/// How far a deadline is pushed out.
const PUSH: Duration = Duration::from_secs(10);
const START: Instant = Instant::from_secs(1);

/// A counted function: its name; how many instructions an operation is expected to take, without
/// the loop around it, which `local_nothing` measures; and the call after everything was set up.
type Counted = (&'static str, Option<f64>, fn());

const COUNTED: &[Counted] = &[
    ("local_nothing", None, || local_nothing(&mut Local::new())),
    ("local_pair", Some(51.0), || local_pair(&mut Local::new())),
    ("local_pair_anywhere", Some(58.0), || local_pair_anywhere(&mut Local::new())),
    ("local_push_out_to", Some(18.0), || local_push_out_to(&mut Local::new())),
    ("local_push_out", Some(26.0), || local_push_out(&mut Local::new())),
    // These two read the system's clock each time, and so do not depend on when `advance` was last.
    ("local_pair_read", Some(100.0), || local_pair_read(&mut Local::on(system_clock()))),
    ("local_push_out_read", Some(74.0), || local_push_out_read(&mut Local::on(system_clock()))),
    ("local_next_event", Some(60.0), || local_next_event(&mut Local::new())),
    ("local_empty_advance", Some(24.0), || local_empty_advance(&mut Local::new())),
    ("local_expiry", Some(60.0), || local_expiry(&mut Local::new())),
    ("local_expiry_keys", Some(29.0), || local_expiry_keys(&mut Local::new())),
    ("local_sleep_once", Some(109.0), || local_sleep_once(&LocalSleeps::new())),
    ("local_coarse_sleep_once", Some(114.0), || local_coarse_sleep_once(&LocalSleeps::new())),
    ("local_sleep_push_out", Some(35.0), || local_sleep_push_out(&mut LocalSleeps::new())),
    ("local_sleep_once_read", Some(151.0), || local_sleep_once_read(&LocalSleeps::reading())),
    ("local_sleep_push_out_read", Some(80.0), || {
        local_sleep_push_out_read(&mut LocalSleeps::reading());
    }),
    ("local_fixed_start", Some(18.0), || local_fixed_start(&mut Fixed::on(Clock::manual(START)))),
    ("local_fixed_start_read", Some(58.0), || {
        local_fixed_start_read(&mut Fixed::on(system_clock()));
    }),
    ("local_sleep_cluster", Some(457.0), || local_sleep_cluster(LocalSleeps::clustered())),
    ("timeout_pair", Some(175.0), || timeout_pair(&mut Shared::new())),
    ("timeout_push_out", Some(46.0), || timeout_push_out(&mut Shared::new())),
    ("sleep_once", Some(379.0), || sleep_once(&mut Shared::new())),
    ("nested_timeouts", Some(2190.0), || nested_timeouts(&mut Shared::new())),
    // 50 of these read the clock and pass the time.
    ("coarse_sleep_reset", Some(79.0), || coarse_sleep_reset(&mut Shared::new())),
    ("coarse_sleep_push_out", Some(31.0), || coarse_sleep_push_out(&mut Shared::new())),
    ("sleep_push_out", Some(41.0), || sleep_push_out(&mut Shared::new())),
    ("coarse_sleep_once", Some(438.0), || coarse_sleep_once(&mut Shared::new())),
    ("limiter_take", Some(37.0), || limiter_take(&Permits::open())),
    ("limiter_refuse", Some(34.0), || limiter_refuse(&Permits::open())),
    ("timeout_expiry", Some(182.0), || timeout_expiry(&Virtual::new(Timers::builder()))),
    ("virtual_sleep", Some(2516.0), || virtual_sleep(&VirtualTime::new())),
    #[cfg(feature = "tokio-time")]
    ("sleep_in_one_runtime", Some(1535.0), || sleep_in_one_runtime(&Runtimes::new())),
    #[cfg(feature = "tokio-time")]
    ("sleep_in_many_runtimes", Some(1535.0), || sleep_in_many_runtimes(&Runtimes::new())),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--run", name] => {
            COUNTED.iter().filter(|counted| counted.0 == name).for_each(|counted| counted.2());
        }
        ["--bench"] => return count(""),
        [part, "--bench"] => return count(part),
        _ => COUNTED.iter().for_each(|counted| counted.2()),
    }
    ExitCode::SUCCESS
}

/// Runs each function whose name contains `part` under its own valgrind, and prints its figure.
fn count(part: &str) -> ExitCode {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("SKIPPED: instruction counts: valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    let (mut nothing, mut too_many) = (0.0, false);
    let wanted = |name: &str| name == "local_nothing" || name.contains(part);
    for (name, expected, _) in COUNTED.iter().filter(|counted| wanted(counted.0)) {
        let mut took = f64::INFINITY;
        // On a busy machine a thread may not earn the bias of a lock, because barriers are slow, or
        // the driver may take it away. Such a run is not a steady state, and is repeated.
        for _ in 0..5 {
            match instructions(name) {
                Ok(total) => took = took.min(total / OPERATIONS as f64),
                Err(why) => {
                    eprintln!("{name}: {why}");
                    return ExitCode::FAILURE;
                }
            }
            if expected.is_none_or(|should| took - nothing <= should * 1.1) {
                break;
            }
        }
        if *name == "local_nothing" {
            nothing = took;
        }
        let of_itself = took - nothing;
        match expected {
            Some(should) => {
                println!("{name:24} {of_itself:8.1} instructions, should take {should:.0}");
                too_many |= of_itself > should * 1.1;
            }
            None => println!("{name:24} {took:8.1} instructions"),
        }
    }
    if too_many {
        eprintln!("something takes over a tenth more instructions than it should");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns the instructions inside one function and its callees.
fn instructions(name: &str) -> Result<f64, String> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg(format!("--toggle-collect=instructions::*{name}"))
        .arg(this)
        .args(["--run", name])
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    let total = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match total {
        Some(total) if total > 0.0 => Ok(total),
        _ => Err(format!("valgrind counted nothing:\n{text}")),
    }
}

/// Local timers: one pending for each operation, and one that is idle.
struct Local {
    /// One deadline for each operation, so that computing them is not counted.
    after: Vec<Duration>,
    later: Vec<Duration>,
    deadlines: Vec<Instant>,
    timers: LocalTimers<u64>,
    keys: Vec<Key>,
    spare: Key,
}

impl Local {
    fn new() -> Local {
        Local::on(Clock::manual(START))
    }

    fn on(clock: Clock) -> Local {
        let mut timers = LocalTimers::new(clock);
        let spare = timers.insert(0).expect("room for one");
        let keys = (0..OPERATIONS).map(|nth| {
            let key = timers.insert(nth).expect("room for one more");
            timers.start(key, after(nth)).expect("just inserted");
            key
        });
        let keys = keys.collect();
        let later: Vec<Duration> = (0..OPERATIONS).map(|nth| after(nth) + PUSH).collect();
        let deadlines = later.iter().map(|&after| START + after).collect();
        Local { after: deadlines_after(), later, deadlines, timers, keys, spare }
    }
}

/// Thread-safe timers on one base: one pending for each operation, and one that is idle.
struct Shared {
    after: Vec<Duration>,
    timers: Timers,
    now: Instant,
    timeouts: Vec<Timeout>,
    spare: Timeout,
}

impl Shared {
    fn new() -> Shared {
        let timers = Timers::builder().bases(1).start().expect("one driver can be started");
        let now = timers.now();
        let timeouts = (0..OPERATIONS).map(|nth| {
            let timeout = timers.timeout(|_| ());
            timeout.start_from(now, after(nth)).expect("not shut down");
            timeout
        });
        let timeouts = timeouts.collect();
        let spare = timers.timeout(|_| ());
        earn_bias(&spare);
        Shared { after: deadlines_after(), timers, now, timeouts, spare }
    }
}

/// Limiters in the middle of a period that does not end.
struct Permits {
    plenty: Limiter,
    none: Limiter,
}

impl Permits {
    fn open() -> Permits {
        let timers = Timers::builder().bases(1).start().expect("one driver can be started");
        let started = |permits| {
            timers.limiter(permits, Duration::from_secs(3600)).start().expect("a good limit")
        };
        let (plenty, none) = (started(1 << 40), started(1));
        let permits = Permits { plenty, none };
        permits.plenty.try_acquire(1).expect("many are there");
        permits.none.try_acquire(1).expect("one is there");
        permits
    }
}

/// Thread-safe timers on virtual time, one pending for each operation.
struct Virtual {
    time: VirtualTime,
    _timeouts: Vec<Timeout>,
}

impl Virtual {
    fn new(builder: Builder) -> Virtual {
        let time = VirtualTime::with_builder(builder.bases(1).coarse_like_real(), START);
        let timeouts = (0..OPERATIONS).map(|nth| {
            let timeout = time.timers().timeout(|fired| _ = black_box(fired));
            timeout.start(after(nth)).expect("not shut down");
            timeout
        });
        let timeouts = timeouts.collect();
        earn_bias(&time.timers().timeout(|_| ()));
        Virtual { time, _timeouts: timeouts }
    }

    fn fire(&self) {
        self.time.advance_to(START + Duration::from_secs(120));
        assert_eq!(self.time.timers().stats().total().fired, OPERATIONS);
    }
}

/// Arms and cancels until this thread owns the bias of the base's lock, as in a steady state.
fn earn_bias(spare: &Timeout) {
    for _ in 0..300_000 {
        spare.start(Duration::from_secs(3_600)).expect("not shut down");
        spare.cancel();
    }
}

fn deadlines_after() -> Vec<Duration> {
    (0..OPERATIONS).map(after).collect()
}

/// 60 to 70 s, unordered.
fn after(nth: u64) -> Duration {
    Duration::from_millis(60_000 + nth * 7_919 % 10_000)
}

/// The sleeps of one thread.
struct LocalSleeps {
    timers: Handle,
    pending: Vec<Sleep>,
    after: Vec<Duration>,
    sleeps: Sleeps,
}

impl LocalSleeps {
    fn new() -> LocalSleeps {
        LocalSleeps::on(Clock::manual(START))
    }

    fn reading() -> LocalSleeps {
        LocalSleeps::on(system_clock())
    }

    fn on(clock: Clock) -> LocalSleeps {
        let sleeps = Sleeps::new(clock);
        let timers = sleeps.handle();
        let after = deadlines_after();
        let pending = (0..OPERATIONS).map(|nth| timers.coarse_sleep(after[nth as usize])).collect();
        let mut local = LocalSleeps { timers, pending, after, sleeps };
        local.pending.iter_mut().for_each(|sleep| poll_once(Pin::new(sleep)));
        local
    }

    /// Precise sleeps that are due at one instant.
    fn clustered() -> LocalSleeps {
        let mut local = LocalSleeps::new();
        local.pending = (0..OPERATIONS).map(|_| local.timers.sleep(PUSH)).collect();
        local.pending.iter_mut().for_each(|sleep| poll_once(Pin::new(sleep)));
        local
    }
}

/// Timeouts of one duration, which are pending.
struct Fixed {
    timers: FixedTimeouts<u64>,
    keys: Vec<FixedKey>,
}

impl Fixed {
    fn on(clock: Clock) -> Fixed {
        let mut timers = FixedTimeouts::new(clock);
        let class = timers.add_class(PUSH).expect("room for one");
        let keys = (0..OPERATIONS).map(|nth| {
            let key = timers.insert(class, nth).expect("room for one more");
            timers.start(key).expect("just inserted");
            key
        });
        let keys = keys.collect();
        Fixed { timers, keys }
    }
}

/// The loop around the other operations, without an operation.
#[inline(never)]
fn local_nothing(local: &mut Local) {
    for (&key, &after) in local.keys.iter().zip(&local.after) {
        black_box((key, after));
    }
}

/// The usual case: each timeout is as long as the one before.
#[inline(never)]
fn local_pair(local: &mut Local) {
    for &key in &local.keys {
        local.timers.start(black_box(local.spare), PUSH).expect("a key of its own");
        local.timers.cancel(local.spare).expect("a key of its own");
        black_box(key);
    }
}

#[inline(never)]
fn local_pair_read(local: &mut Local) {
    local_pair(local);
}

#[inline(never)]
fn local_push_out_read(local: &mut Local) {
    local_push_out(local);
}

/// Random deadlines; few of them are before the earliest bucket so far.
#[inline(never)]
fn local_pair_anywhere(local: &mut Local) {
    for &after in &local.after {
        local.timers.start(local.spare, after).expect("a key of its own");
        local.timers.cancel(local.spare).expect("a key of its own");
    }
}

/// Pushes out to a point in time.
#[inline(never)]
fn local_push_out_to(local: &mut Local) {
    for (&key, &deadline) in local.keys.iter().zip(&local.deadlines) {
        local.timers.start_at(key, deadline).expect("its own key");
    }
}

#[inline(never)]
fn local_push_out(local: &mut Local) {
    for (&key, &after) in local.keys.iter().zip(&local.later) {
        local.timers.start(key, after).expect("its own key");
    }
}

#[inline(never)]
fn local_next_event(local: &mut Local) {
    for _ in 0..OPERATIONS {
        black_box(black_box(&local.timers).next_event());
    }
}

#[inline(never)]
fn local_empty_advance(local: &mut Local) {
    for nth in 0..OPERATIONS {
        let now = START + Duration::from_micros(nth * 1_000);
        black_box(local.timers.advance(now, |_, _| ()));
    }
}

#[inline(never)]
fn local_expiry(local: &mut Local) {
    let mut fired = 0;
    let all_due = START + Duration::from_secs(120);
    local.timers.advance(all_due, |timers, key| {
        fired += 1;
        *timers.get_mut(key).expect("it fired") += 1;
    });
    assert_eq!(fired, OPERATIONS);
}

#[inline(never)]
fn local_expiry_keys(local: &mut Local) {
    let mut fired = Vec::with_capacity(OPERATIONS as usize);
    local.timers.advance_into(START + Duration::from_secs(120), &mut fired);
    assert_eq!(fired.len() as u64, OPERATIONS);
}

#[inline(never)]
fn timeout_pair(shared: &mut Shared) {
    for &after in &shared.after {
        shared.spare.start_from(shared.now, after).expect("not shut down");
        shared.spare.cancel();
    }
}

#[inline(never)]
fn timeout_push_out(shared: &mut Shared) {
    for (timeout, &after) in shared.timeouts.iter().zip(&shared.after) {
        timeout.start_from(shared.now, after + PUSH).expect("not shut down");
    }
}

/// Creates a sleep of one thread, polls it once and drops it.
#[inline(never)]
fn local_sleep_once(local: &LocalSleeps) {
    for &after in &local.after {
        poll_once(pin!(local.timers.sleep(after)));
    }
}

#[inline(never)]
fn local_coarse_sleep_once(local: &LocalSleeps) {
    for &after in &local.after {
        poll_once(pin!(local.timers.coarse_sleep(after)));
    }
}

#[inline(never)]
fn local_sleep_push_out(local: &mut LocalSleeps) {
    for (sleep, &after) in local.pending.iter_mut().zip(&local.after) {
        sleep.reset(after + PUSH);
    }
}

#[inline(never)]
fn local_sleep_once_read(local: &LocalSleeps) {
    local_sleep_once(local);
}

#[inline(never)]
fn local_sleep_push_out_read(local: &mut LocalSleeps) {
    local_sleep_push_out(local);
}

/// Restarts a timeout, as each request does with that of its connection.
#[inline(never)]
fn local_fixed_start(fixed: &mut Fixed) {
    for &key in &fixed.keys {
        fixed.timers.start(key).expect("its own key");
    }
}

#[inline(never)]
fn local_fixed_start_read(fixed: &mut Fixed) {
    local_fixed_start(fixed);
}

/// Precise sleeps that are due at one instant wake their tasks, are polled and dropped.
#[inline(never)]
fn local_sleep_cluster(local: LocalSleeps) {
    assert_eq!(local.sleeps.advance(START + PUSH) as u64, OPERATIONS);
    for mut sleep in local.pending {
        assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}

/// Creates a sleep, polls it once and drops it: the cost of a timeout around some work.
#[inline(never)]
fn sleep_once(shared: &mut Shared) {
    for &after in &shared.after {
        poll_once(pin!(shared.timers.sleep(after)));
    }
}

/// Nine nested timeouts in a deadline scope that ends before them, as ten calls of a request have.
#[inline(never)]
fn nested_timeouts(shared: &mut Shared) {
    macro_rules! nest {
        ($timers:ident, $after:ident, $inner:expr,) => {
            poll_once(pin!($timers.deadline_scope($timers.now() + $after, $inner)));
        };
        ($timers:ident, $after:ident, $inner:expr, $_call:tt $($calls:tt)*) => {
            let inner = pin!($timers.timeout_after(PUSH * 9, $inner));
            nest!($timers, $after, inner, $($calls)*);
        };
    }
    let timers = &shared.timers;
    for &after in &shared.after {
        nest!(timers, after, pending::<()>(), 1 2 3 4 5 6 7 8 9);
    }
}

#[inline(never)]
fn coarse_sleep_once(shared: &mut Shared) {
    for &after in &shared.after {
        poll_once(pin!(shared.timers.coarse_sleep(after)));
    }
}

/// Pushes out, as each request does with the idle timeout of its connection.
#[inline(never)]
fn coarse_sleep_reset(shared: &mut Shared) {
    let mut sleep = pin!(shared.timers.coarse_sleep(shared.after[0]));
    poll_once(sleep.as_mut());
    for nth in 0..OPERATIONS {
        sleep.as_mut().reset(PUSH * 8 + Duration::from_micros(nth));
    }
}

#[inline(never)]
fn sleep_push_out(shared: &mut Shared) {
    let now = shared.timers.now();
    let mut sleep = pin!(shared.timers.sleep(PUSH * 8));
    poll_once(sleep.as_mut());
    for nth in 0..OPERATIONS {
        sleep.as_mut().reset_from(now, PUSH * 8 + Duration::from_micros(nth));
    }
}

/// Pushes out, in a loop that has already read the clock.
#[inline(never)]
fn coarse_sleep_push_out(shared: &mut Shared) {
    let now = shared.timers.now();
    let mut sleep = pin!(shared.timers.coarse_sleep(shared.after[0]));
    poll_once(sleep.as_mut());
    for nth in 0..OPERATIONS {
        sleep.as_mut().reset_from(now, PUSH * 8 + Duration::from_micros(nth));
    }
}

#[inline(always)]
fn poll_once(future: Pin<&mut impl Future>) {
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[inline(never)]
fn limiter_take(permits: &Permits) {
    for _ in 0..OPERATIONS {
        permits.plenty.try_acquire(1).expect("many are there");
    }
}

#[inline(never)]
fn limiter_refuse(permits: &Permits) {
    for _ in 0..OPERATIONS {
        permits.none.try_acquire(1).expect_err("none is there");
    }
}

/// Sleeps on virtual time one after the other. The lock is not biased.
#[inline(never)]
fn virtual_sleep(time: &VirtualTime) {
    time.block_on(async {
        for _ in 0..OPERATIONS {
            time.timers().sleep(PUSH).await;
        }
    });
}

#[inline(never)]
fn timeout_expiry(virtual_timers: &Virtual) {
    virtual_timers.fire();
}

#[cfg(feature = "tokio-time")]
use runtimes::{Runtimes, sleep_in_many_runtimes, sleep_in_one_runtime};

/// Sleeps in tokio's runtimes. They use no descriptors, of which a process may have few.
#[cfg(feature = "tokio-time")]
mod runtimes {
    use super::{OPERATIONS, after, poll_once};
    use std::pin::pin;
    use tickless::tokio_time::{sleep, use_tokio_sleep};
    use tokio::runtime::{Builder, Runtime};

    pub struct Runtimes(Vec<Runtime>);

    impl Runtimes {
        pub fn new() -> Runtimes {
            let build = |_| {
                let runtime = Builder::new_current_thread().enable_time().build();
                let runtime = runtime.expect("a runtime without threads");
                runtime.block_on(async { use_tokio_sleep() });
                sleeps(1, [&runtime]);
                runtime
            };
            Runtimes((0..OPERATIONS).map(build).collect())
        }
    }

    #[inline(always)]
    fn sleeps<'a>(count: u64, runtimes: impl IntoIterator<Item = &'a Runtime>) {
        for (nth, runtime) in (0..count).zip(runtimes) {
            let _in_runtime = runtime.enter();
            poll_once(pin!(sleep(after(nth))));
        }
    }

    #[inline(never)]
    pub fn sleep_in_one_runtime(Runtimes(all): &Runtimes) {
        sleeps(OPERATIONS, all[..1].iter().cycle());
    }

    /// Goal: no list of runtimes is searched, and no lock is taken: as with one.
    #[inline(never)]
    pub fn sleep_in_many_runtimes(Runtimes(all): &Runtimes) {
        sleeps(OPERATIONS, all);
    }
}
