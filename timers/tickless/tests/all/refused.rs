//! Processes in which a seccomp filter refuses system calls, and a busy process with fewer CPUs
//! than at the start: the timers report what is refused, use a fallback, and lose no timer.
//!
//! Each case is a process of its own, because a filter cannot be removed.

use crate::support::{MS, PATIENCE, child_test, thread_names, wait_until};
use std::error::Error;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use tickless::clock::{OpenClockError, SystemClock};
use tickless::{HrTimer, Timers};

/// The environment variable that selects a child process's task.
const CASE: &str = "TICKLESS_TEST_REFUSED";
/// The exit status of a child if the system does not allow filters.
const CANNOT: i32 = 77;

const CASES: [(&str, fn()); 8] = [
    ("barriers", no_barriers),
    ("rseq", no_rseq),
    ("cpus", fewer_cpus),
    ("threads", no_threads_later),
    ("loop", a_loop_without_a_descriptor),
    ("clock", a_clock_without_step_notifications),
    ("ptp", a_clock_without_permission),
    ("names", no_names),
];

#[test]
fn timers_are_kept_when_calls_are_refused() {
    if cfg!(miri) {
        return;
    }
    if let Ok(wanted) = std::env::var(CASE) {
        let (_, run) = CASES.iter().find(|(name, _)| *name == wanted).unwrap();
        return run();
    }
    for (case, _) in CASES {
        let test = "refused::timers_are_kept_when_calls_are_refused";
        let output = child_test(test, CASE, case).output().unwrap();
        if output.status.code() == Some(CANNOT) {
            println!("SKIPPED: this system does not allow seccomp filters");
            return;
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}: {stderr}");
    }
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

/// Bases whose drivers the system refuses on their first use: their timers fire on another base.
fn no_threads_later() {
    let timers = Timers::builder().bases(4).start().unwrap();
    refuse(&[libc::SYS_clone3, libc::SYS_clone], Whom::AllThreads);
    let (all, bases) = one_on_each_base(&timers);
    for _ in &all {
        assert_eq!(bases.recv_timeout(PATIENCE), Ok(0));
    }
    assert_fires(&timers);
}

/// Starts a timer on each of four bases, and returns where they fire.
fn one_on_each_base(timers: &Timers) -> (Vec<HrTimer>, mpsc::Receiver<u16>) {
    let (tx, rx) = mpsc::channel();
    let pinned = |base| {
        let tx = tx.clone();
        let timer = timers.hrtimer(move |fired| tx.send(fired.base().0).unwrap());
        let timer = timer.pinned(tickless::driver::CpuId(base));
        timer.start(MS * 50).unwrap();
        timer
    };
    ((0..4).map(pinned).collect(), rx)
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

/// Without rseq(2), from whose memory the number of a thread's CPU is read, timers are still armed
/// on the base of the CPU that arms them.
fn no_rseq() {
    // SAFETY: the call is refused, or fails because the arguments are invalid.
    let is_refused = unsafe {
        libc::syscall(libc::SYS_rseq, 0, 0, 0, 0);
        *libc::__errno_location() == libc::EPERM
    };
    if !is_refused {
        // The C library registers its threads when a process starts, so start it again.
        refuse(&[libc::SYS_rseq], Whom::ThisThread);
        let test = "refused::timers_are_kept_when_calls_are_refused";
        panic!("{}", child_test(test, CASE, "rseq").exec());
    }
    let timers = Timers::builder().start().unwrap();
    let all = rustix::thread::sched_getaffinity(None).unwrap();
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    for (base, cpu) in cpus.enumerate() {
        let armed_on = |cpu| {
            let mut one = rustix::thread::CpuSet::new();
            one.set(cpu);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            let (tx, rx) = mpsc::channel();
            let timer = timers.hrtimer(move |fired| tx.send(fired.base().0).unwrap());
            timer.start(MS).unwrap();
            rx.recv_timeout(PATIENCE).unwrap()
        };
        let fired_on = std::thread::scope(|s| s.spawn(|| armed_on(cpu)).join().unwrap());
        assert_eq!(usize::from(fired_on), base);
    }
}

/// A process that is moved to a single CPU while three threads arm timers, as by a smaller cpuset
/// or when the other CPUs go offline: the timers of all bases fire.
fn fewer_cpus() {
    let timers = Timers::builder().bases(4).pin_drivers().start().unwrap();
    let heart = timers.periodic(|_| {});
    heart.start(MS).unwrap();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let (kept, fires) = (timers.timeout(|_| {}), timers.hrtimer(|_| {}));
                while !has_ended.load(Ordering::Relaxed) {
                    kept.start(PATIENCE).unwrap();
                    fires.start(MS / 10).unwrap();
                    kept.cancel_sync().unwrap();
                }
            });
        }
        move_to_one_cpu(&timers);
        has_ended.store(true, Ordering::Relaxed);
    });
    let total = timers.stats().total();
    assert!(total.armed <= total.fired + total.cancelled + 1, "the heart is pending: {total:?}");
    assert_fires(&timers);
}

fn move_to_one_cpu(timers: &Timers) {
    let (all, fired_on) = one_on_each_base(timers);
    let mut one = rustix::thread::CpuSet::new();
    let old = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| old.is_set(cpu)).unwrap();
    one.set(first);
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let id = task.file_name().to_str().unwrap().parse().unwrap();
        // A thread may have ended.
        let _ = rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(id), &one);
    }
    let mut bases: Vec<u16> =
        all.iter().map(|_| fired_on.recv_timeout(PATIENCE).unwrap()).collect();
    bases.sort_unstable();
    assert_eq!(bases, [0, 1, 2, 3]);
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
    // What musl calls where the system has it.
    #[cfg(target_arch = "x86_64")]
    refuse(&[libc::SYS_open], Whom::ThisThread);
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
