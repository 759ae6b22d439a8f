//! Processes in which a seccomp filter refuses a system call that an event device needs: the timers
//! report the call and the error, fall back to a futex, and lose no timer. Likewise without
//! membarrier(2), and with fewer CPUs than at the start.
//!
//! Each case is a process of its own, because a filter cannot be removed.

use crate::support::{MS, PATIENCE, child_test, thread_names, wait_until};
use std::error::Error;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use tickless::Timers;
use tickless::clock::{OpenClockError, SystemClock};
use tickless::driver::Device;

/// The environment variable that selects a child process's task.
const CASE: &str = "TICKLESS_TEST_REFUSED";
/// The exit status of a child if the system does not allow filters.
const CANNOT: i32 = 77;

/// The calls that are refused from the start, by the name that the fallback must report.
const AT_START: [(&str, &[libc::c_long]); 6] = [
    ("timerfd_create", &[libc::SYS_timerfd_create]),
    ("timerfd_settime", &[libc::SYS_timerfd_settime]),
    ("eventfd2", &[libc::SYS_eventfd2]),
    ("epoll_create1", &[libc::SYS_epoll_create1]),
    ("epoll_ctl", &[libc::SYS_epoll_ctl]),
    ("epoll_wait", &[SYS_EPOLL_WAIT, libc::SYS_epoll_pwait]),
];

#[cfg(target_arch = "x86_64")]
const SYS_EPOLL_WAIT: libc::c_long = libc::SYS_epoll_wait;
#[cfg(not(target_arch = "x86_64"))]
const SYS_EPOLL_WAIT: libc::c_long = libc::SYS_epoll_pwait;

const OTHERS: [&str; 9] = [
    "barriers",
    "cpus",
    "later timerfd_settime",
    "later epoll_wait",
    "later threads",
    "loop",
    "clock",
    "ptp",
    "names",
];

#[test]
fn timers_are_kept_when_calls_are_refused() {
    if cfg!(miri) {
        return;
    }
    if let Ok(case) = std::env::var(CASE) {
        return child(&case);
    }
    let cases = AT_START.iter().map(|(name, _)| name.to_string());
    for case in cases.chain(OTHERS.map(str::to_string)) {
        let test = "refused::timers_are_kept_when_calls_are_refused";
        let output = child_test(test, CASE, &case).output().unwrap();
        if output.status.code() == Some(CANNOT) {
            println!("SKIPPED: this system does not allow seccomp filters");
            return;
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}: {stderr}");
    }
}

fn child(case: &str) {
    match case.strip_prefix("later ") {
        Some("timerfd_settime") => refused_later("timerfd_settime", &[libc::SYS_timerfd_settime]),
        Some("threads") => no_threads_later(),
        Some(_) => refused_later("epoll_wait", AT_START[5].1),
        None if case == "barriers" => no_barriers(),
        None if case == "cpus" => fewer_cpus(),
        None if case == "loop" => a_loop_without_a_descriptor(),
        None if case == "names" => no_names(),
        None if case == "ptp" => a_clock_without_permission(),
        None if case == "clock" => a_clock_without_step_notifications(),
        None => refused_at_start(case),
    }
}

fn start() -> Timers {
    Timers::builder().bases(2).device(Device::Timerfd).start().unwrap()
}

/// Asserts that the timers report this call, and that they fell back to a futex.
fn assert_fallback(timers: &Timers, call: &str) {
    let fallback = timers.device_fallback().expect("a fallback is reported");
    assert_eq!(fallback.kind(), ErrorKind::PermissionDenied);
    assert!(fallback.to_string().contains(&format!("refused {call} (")), "{fallback}");
    assert_eq!(timers.device(), Some(Device::Futex));
}

/// Asserts that every armed timer fires.
fn assert_fires(timers: &Timers) {
    let (tx, rx) = mpsc::channel();
    let one = |nth: u32| {
        let tx = tx.clone();
        let timer = timers.hrtimer(move |_| tx.send(nth).unwrap());
        timer.start(MS * (20 - nth)).unwrap();
        timer
    };
    let all: Vec<_> = (0..20).map(one).collect();
    for _ in &all {
        rx.recv_timeout(PATIENCE).unwrap();
    }
}

fn refused_at_start(call: &str) {
    let (_, numbers) = AT_START.iter().find(|(name, _)| *name == call).unwrap();
    refuse(numbers, Whom::ThisThread);
    let timers = start();
    assert_fallback(&timers, call);
    assert_fires(&timers);
}

/// Bases whose drivers the system refuses when they are first used: their timers fire on another
/// base.
fn no_threads_later() {
    let timers = Timers::builder().bases(4).start().unwrap();
    refuse(&[libc::SYS_clone3, libc::SYS_clone], Whom::AllThreads);
    let (tx, rx) = mpsc::channel();
    let pinned = |base| {
        let tx = tx.clone();
        let timer = timers.hrtimer(move |fired| tx.send(fired.base().0).unwrap());
        let timer = timer.pinned(tickless::driver::CpuId(base));
        timer.start(MS * 20).unwrap();
        timer
    };
    let all: Vec<_> = (0..4).map(pinned).collect();
    for _ in &all {
        assert_eq!(rx.recv_timeout(PATIENCE), Ok(0));
    }
    assert_fires(&timers);
}

/// Drivers run although their threads may set neither a name nor a slack.
fn no_names() {
    refuse(&[libc::SYS_prctl], Whom::ThisThread);
    let timers = Timers::builder().bases(2).expiry_threads().start().unwrap();
    assert_fires(&timers);
    let names = thread_names();
    assert!(names.len() > 2 && !names.iter().any(|name| name.contains("tickless")), "{names:?}");
}

/// Without membarrier(2), locks have no bias.
fn no_barriers() {
    refuse(&[libc::SYS_membarrier], Whom::AllThreads);
    let timers = Timers::builder().bases(4).start().unwrap();
    let armed: u64 = std::thread::scope(|s| {
        let threads = [0, 1, 2].map(|_| {
            s.spawn(|| {
                let timer = timers.timeout(|_| {});
                for _ in 0..20_000 {
                    timer.start(PATIENCE).unwrap();
                    assert_eq!(timer.cancel(), tickless::callback::Cancel::Pending);
                }
                20_000
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!(timers.stats().total().armed, armed);
    assert_fires(&timers);
}

/// A process that is moved to a single CPU while its timers run, as by a smaller cpuset or when the
/// other CPUs go offline: the timers of all bases fire.
fn fewer_cpus() {
    let timers = Timers::builder().bases(4).pin_drivers().start().unwrap();
    let heart = timers.periodic(|_| {});
    heart.start(MS).unwrap();
    let (tx, rx) = mpsc::channel();
    let pinned = |base| {
        let tx = tx.clone();
        let timer = timers.hrtimer(move |fired| tx.send(fired.base().0).unwrap());
        let timer = timer.pinned(tickless::driver::CpuId(base));
        timer.start(MS * 50).unwrap();
        timer
    };
    let all: Vec<_> = (0..4).map(pinned).collect();
    let mut one = rustix::thread::CpuSet::new();
    let old = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| old.is_set(cpu)).unwrap();
    one.set(first);
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let id = task.file_name().to_str().unwrap().parse().unwrap();
        // A thread may have ended.
        let _ = rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(id), &one);
    }
    let mut bases: Vec<u16> = all.iter().map(|_| rx.recv_timeout(PATIENCE).unwrap()).collect();
    bases.sort_unstable();
    assert_eq!(bases, [0, 1, 2, 3]);
    assert_fires(&timers);
}

/// A filter that is installed on all threads while timers run.
fn refused_later(call: &str, numbers: &[libc::c_long]) {
    let timers = start();
    assert_eq!(
        (timers.device(), timers.device_fallback().is_none()),
        (Some(Device::Timerfd), true)
    );
    let fired = Arc::new(AtomicU64::new(0));
    let (count, stop) = (Arc::clone(&fired), Arc::new(AtomicBool::new(false)));
    let pending = timers.hrtimer(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
    let heart = timers.periodic(|_| {});
    pending.start(MS * 50).unwrap();
    heart.start(MS).unwrap();
    let churned = std::thread::scope(|s| {
        // Bases whose devices are written while the filter is installed.
        let churners = [0, 1].map(|base| {
            let (timers, stop) = (&timers, &stop);
            s.spawn(move || {
                let timer = timers.hrtimer(|_| {}).pinned(tickless::driver::CpuId(base));
                while !stop.load(Ordering::Relaxed) {
                    timer.start(MS / 10).unwrap();
                    wait_until("it fires", || !timer.is_active());
                }
            })
        });
        std::thread::sleep(MS * 5);
        refuse(numbers, Whom::AllThreads);
        wait_until("both bases have noticed", || timers.device() == Some(Device::Futex));
        wait_until("it fires", || fired.load(Ordering::SeqCst) == 1);
        stop.store(true, Ordering::Relaxed);
        churners.into_iter().all(|churner| churner.join().is_ok())
    });
    assert!(churned);
    assert_fallback(&timers, call);
    assert_fires(&timers);
}

fn a_loop_without_a_descriptor() {
    refuse(&[libc::SYS_timerfd_create], Whom::ThisThread);
    let error = Timers::builder().start_in_loop().unwrap_err();
    assert!(error.source().unwrap().to_string().contains("timerfd_create"), "{error:?}");
    assert!(error.to_string().contains("start_in_loop_with"), "{error}");
    let (timers, mut driver) = Timers::builder().start_in_loop_with(|_| {});
    let timer = timers.hrtimer(|_| {});
    timer.start(MS).unwrap();
    wait_until("it fires", || driver.run() == 1);
}

/// Timers on realtime, on a system that does not report steps.
fn a_clock_without_step_notifications() {
    refuse(&[libc::SYS_timerfd_create], Whom::ThisThread);
    let timers = Timers::builder().bases(1).start().unwrap();
    let (tx, rx) = mpsc::channel();
    let timer = timers.clock_timer(tickless::clock::TimeBase::Realtime, move |fired| {
        tx.send(fired.now() >= fired.deadline()).unwrap();
    });
    let fallback = timers.clock_watch_fallback().expect("a fallback is reported");
    assert_eq!(fallback.kind(), ErrorKind::PermissionDenied);
    assert!(fallback.to_string().contains("refused timerfd_create ("), "{fallback}");
    timer.start_at(timers.now_on(tickless::clock::TimeBase::Realtime) + MS * 20).unwrap();
    assert_eq!(rx.recv_timeout(PATIENCE), Ok(true));
}

/// A PTP device that may not be opened.
fn a_clock_without_permission() {
    refuse(&[libc::SYS_openat], Whom::ThisThread);
    let error = SystemClock::open_ptp("/dev/ptp0").unwrap_err();
    assert!(matches!(error, OpenClockError::NoPermission { .. }), "{error:?}");
    assert!(error.to_string().contains("/dev/ptp0"), "{error}");
}

/// The threads to which a filter applies.
#[derive(PartialEq)]
enum Whom {
    /// The calling thread and the threads that it starts.
    ThisThread,
    AllThreads,
}

/// Makes the system refuse these calls with EPERM. Ends the process if it cannot.
fn refuse(numbers: &[libc::c_long], whom: Whom) {
    // Loads the number of the call, compares it with each, and jumps to the end on a match.
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (place, number) in numbers.iter().enumerate() {
        let code = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(instruction(code, *number as u32, (numbers.len() - place) as u8));
    }
    let give_back = libc::BPF_RET | libc::BPF_K;
    filter.push(instruction(give_back, libc::SECCOMP_RET_ALLOW, 0));
    filter.push(instruction(give_back, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let flags = if whom == Whom::AllThreads { libc::SECCOMP_FILTER_FLAG_TSYNC } else { 0 };
    // SAFETY: the program and its instructions outlive the call in which the kernel reads them.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program) != 0
    };
    if refused {
        std::process::exit(CANNOT);
    }
}

fn instruction(code: u32, k: u32, jump: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump, jf: 0, k }
}
