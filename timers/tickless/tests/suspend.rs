//! H5 (a suspend): the CPU's counter moves by an hour in which `CLOCK_MONOTONIC` stood.
//!
//! A test cannot suspend the machine. So the counter is trapped on the test's threads: reading it
//! raises SIGSEGV, and the handler adds the counts by which a test has moved the counter. The vDSO
//! gets the true count, so the system's clocks are not changed.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![expect(unsafe_code, reason = "prctl(2) and sigaction(2) have no safe functions")]
// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use core::arch::x86_64::_rdtsc;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tickless::clock::ClockSource;
use tickless::{Timers, future};

const MS: Duration = Duration::from_millis(1);
const FAR: Duration = Duration::from_secs(12);
/// About an hour of counts, at 2 to 4 GHz.
const HOUR: u64 = 10_000_000_000_000;

/// How far the counter is ahead of the true one. Wraps around.
static AHEAD: AtomicU64 = AtomicU64::new(0);
static VDSO: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Held by the running test: all of them move the same counter.
static TURN: Mutex<()> = Mutex::new(());

fn allow_rdtsc(how: libc::c_int) {
    // SAFETY: the call has no other effect than that this thread may or may not read the counter.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_TSC, how) }, 0);
}

/// Emulates the instructions that read the counter. Any other fault ends the process as before.
extern "C" fn on_fault(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    const RDTSCP: [u8; 3] = [0x0f, 0x01, 0xf9];
    // SAFETY: the kernel passes a context that the handler may change.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize];
    // SAFETY: the thread was about to execute what is there. If that is not the reason of the
    // fault, the two reads fault in turn, which ends the process.
    let code = unsafe { *(at as *const [u8; 2]) };
    let length = match code {
        RDTSC => RDTSC.len(),
        // SAFETY: as above.
        [0x0f, 0x01] if unsafe { *(at as *const [u8; 3]) } == RDTSCP => RDTSCP.len(),
        _ => {
            // SAFETY: the default action is set for the fault that follows the return from here.
            unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
            return;
        }
    };
    let [from, to] = [&VDSO[0], &VDSO[1]].map(|end| end.load(Ordering::Relaxed));
    let ahead = if (from..to).contains(&(at as u64)) { 0 } else { AHEAD.load(Ordering::SeqCst) };
    allow_rdtsc(libc::PR_TSC_ENABLE);
    // SAFETY: every x86-64 CPU has the instruction.
    let count = unsafe { _rdtsc() }.wrapping_add(ahead);
    allow_rdtsc(libc::PR_TSC_SIGSEGV);
    registers[libc::REG_RAX as usize] = (count & 0xffff_ffff) as i64;
    registers[libc::REG_RDX as usize] = (count >> 32) as i64;
    registers[libc::REG_RIP as usize] = at + length as i64;
}

/// Waits for the test's turn, and traps the counter on this thread and those that it starts.
fn trapped() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vDSO");
    let (from, to) = vdso.split_once(' ').unwrap().0.split_once('-').unwrap();
    for (end, text) in VDSO.iter().zip([from, to]) {
        end.store(u64::from_str_radix(text, 16).unwrap(), Ordering::Relaxed);
    }
    // SAFETY: all zeroes is a valid action, and the handler has the signature that the flags ask
    // for. It calls nothing but `prctl` and `signal`.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, core::ptr::null_mut()), 0);
    }
    allow_rdtsc(libc::PR_TSC_SIGSEGV);
    turn
}

/// Starts timers on one base; `None` if they would not use the counter.
fn start() -> Option<Timers> {
    let timers = Timers::builder().bases(1).start().unwrap();
    (timers.clock_source() == ClockSource::Tsc).then_some(timers)
}

/// The counter goes on for about an hour, while `CLOCK_MONOTONIC` stands.
fn suspend() {
    AHEAD.fetch_add(HOUR, Ordering::SeqCst);
}

/// The counter restarts, as after a restore on another machine.
fn restart() {
    // SAFETY: every x86-64 CPU has the instruction.
    AHEAD.fetch_sub(unsafe { _rdtsc() } - 1_000_000, Ordering::SeqCst);
}

/// The counter stands for a while, in which `CLOCK_MONOTONIC` goes on.
fn stand() {
    AHEAD.fetch_sub(100_000_000, Ordering::SeqCst);
}

/// Makes a callback that reports when it runs.
fn report() -> (Receiver<Instant>, impl Fn() + Send + 'static) {
    let (to, fired) = channel();
    (fired, move || to.send(Instant::now()).unwrap_or(()))
}

/// Checks that it happens that long after `begun`, by `CLOCK_MONOTONIC`; a second later at most.
#[track_caller]
fn expect(fired: &Receiver<Instant>, begun: Instant, after: Duration) {
    let at = fired.recv_timeout(after + FAR).expect("it happens") - begun;
    in_time(at, after);
}

#[track_caller]
fn in_time(took: Duration, after: Duration) {
    let allowed: RangeInclusive<Duration> = after - MS / 2..=after + MS * 1000;
    assert!(allowed.contains(&took), "after {took:?} instead of {after:?}");
}

/// Goal: W1 (never early). A 600 s timer fired as soon as another timer woke its driver.
#[test]
fn a_pending_timer_does_not_fire_early() {
    let _turn = trapped();
    let Some(timers) = start() else { return };
    for jump in [suspend as fn(), restart, stand] {
        let (begun, (early, on_early), (due, on_due)) = (Instant::now(), report(), report());
        let (long, coarse) = (timers.hrtimer(move |_| on_early()), timers.timeout(|_| {}));
        long.start(Duration::from_secs(600)).unwrap();
        coarse.start(Duration::from_secs(600)).unwrap();
        let short = timers.hrtimer(move |_| on_due());
        short.start(MS * 300).unwrap();
        std::thread::sleep(MS * 100);
        jump();
        expect(&due, begun, MS * 300);
        let early = early.recv_timeout(MS * 200);
        assert!(early.is_err() && coarse.is_pending(), "fired {:?} after", begun.elapsed());
    }
}

/// Goal: a timer that is armed after the suspend does not wait for the deadline of before.
#[test]
fn a_new_timer_is_not_late() {
    let _turn = trapped();
    let Some(timers) = start() else { return };
    let pending = timers.hrtimer(|_| {});
    for jump in [suspend as fn(), restart, stand, suspend] {
        pending.start(FAR).unwrap();
        std::thread::sleep(MS * 100);
        jump();
        let ((fired, on_fired), begun) = (report(), Instant::now());
        let timer = timers.hrtimer(move |_| on_fired());
        timer.start(MS * 200).unwrap();
        expect(&fired, begun, MS * 200);
    }
}

#[test]
fn a_new_sleep_is_not_late() {
    let _turn = trapped();
    let pending = future::sleep(FAR);
    pollster::block_on(future::timeout(MS * 100, pending)).unwrap_err();
    for coarse in [false, true] {
        suspend();
        let begun = Instant::now();
        if coarse {
            pollster::block_on(future::coarse_sleep(MS * 200));
        } else {
            pollster::block_on(future::sleep(MS * 200));
        }
        in_time(begun.elapsed(), MS * 200);
    }
}

/// Goal: the loop of a program that embeds a base waits for the right time; nothing is early.
#[test]
fn an_event_loop_does_not_count_it() {
    let _turn = trapped();
    let (timers, mut driver) = Timers::builder().start_in_loop().unwrap();
    let (begun, (fired, on_fired)) = (Instant::now(), report());
    let (long, short) = (timers.hrtimer(|_| {}), timers.hrtimer(move |_| on_fired()));
    long.start(FAR).unwrap();
    let far = driver.timeout().unwrap();
    suspend();
    assert_eq!(driver.run(), 0);
    let left = driver.timeout().unwrap();
    assert!(left <= far && left + MS * 1000 > far, "{left:?} of {far:?} left");
    short.start(MS * 100).unwrap();
    while fired.try_recv().map(|at| in_time(at - begun, MS * 100)).is_err() {
        assert!(begun.elapsed() < FAR, "it does not fire");
        std::thread::sleep(driver.timeout().unwrap());
        driver.run();
    }
    assert!(long.is_pending());
}
