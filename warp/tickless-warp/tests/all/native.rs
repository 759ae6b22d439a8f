//! Arguments that are odd: a program prints what its calls return, natively and in virtual time,
//! and both must be equal.

#![allow(clippy::print_stdout, reason = "the programs print what is compared")]

use crate::harness::{Done, block, in_child, now, now_by_call, run, spec, this_test, warp};
use libc::{c_int, c_long, itimerspec, timespec};
use std::ptr::{null, null_mut, without_provenance_mut};
use std::time::Duration;

/// Runs a test's body natively and in virtual time, with these words before it, and compares the
/// lines that it prints with [`show`].
fn is_as_native(before: &[&str], body: impl FnOnce()) {
    let Some(test) = this_test() else { return body() };
    let words: Vec<&str> = before.iter().copied().chain(test.iter().map(String::as_str)).collect();
    let shown = |done: &Done| {
        let lines = done.out.lines().filter(|line| line.contains("= "));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    let native = shown(&run(&words));
    let done = warp(&words);
    assert!(!native.is_empty() && done.status.success(), "{}", done.err);
    assert_eq!(native, shown(&done));
}

fn show(what: &str, result: c_long) {
    let error = std::io::Error::last_os_error().raw_os_error().filter(|_| result < 0);
    println!("{what} = {result} {}", error.unwrap_or(0));
}

#[test]
fn odd_arguments_are_answered_as_by_the_kernel() {
    is_as_native(&[], || {
        let no_time = spec(0);
        let (short, past) = (timespec { tv_sec: 0, tv_nsec: 1_000 }, &raw const no_time);
        for clock in [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1 << 20] {
            let sleep = |flags: c_int| unsafe {
                libc::syscall(libc::SYS_clock_nanosleep, clock, flags, &raw const short, 0)
            };
            show(&format!("clock_nanosleep {clock}"), sleep(0));
            show(&format!("an absolute clock_nanosleep {clock}"), sleep(libc::TIMER_ABSTIME));
            let mut now = no_time;
            show(&format!("clock_gettime {clock}"), unsafe {
                libc::syscall(libc::SYS_clock_gettime, clock, &raw mut now)
            });
            show(&format!("a function's clock_gettime {clock}"), unsafe {
                libc::clock_gettime(clock, &raw mut now).into()
            });
            let word = [0_u32];
            let waiter = [0_u64, word.as_ptr().addr() as u64, 2 | 128];
            show(&format!("futex_waitv {clock}"), unsafe {
                libc::syscall(libc::SYS_futex_waitv, waiter.as_ptr(), 1, 0, past, clock)
            });
            show(&format!("futex_wait {clock}"), unsafe {
                libc::syscall(455, word.as_ptr(), 0_u64, 1_u64, 2, past, clock)
            });
        }
        let set =
            |value, interval| itimerspec { it_interval: spec(interval), it_value: spec(value) };
        let (mut old, bad) = (set(0, 0), without_provenance_mut::<itimerspec>(8));
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) };
        let mut timer = null_mut();
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_NONE;
        let created = unsafe { libc::timer_create(1, &raw mut event, &raw mut timer) };
        assert_eq!(created, 0);
        let id = timer.addr() as c_int;
        let odd = itimerspec { it_value: timespec { tv_sec: 0, tv_nsec: -1 }, ..set(0, 0) };
        let number = |at: *const itimerspec| at.addr();
        for (what, call, name) in
            [("timerfd", libc::SYS_timerfd_settime, fd), ("timer", libc::SYS_timer_settime, id)]
        {
            let settime = |flags: c_int, new: *const itimerspec, old: *mut itimerspec| unsafe {
                libc::syscall(call, name, flags, number(new), number(old))
            };
            for flags in [0, 1, 2, 3, 4, 7, -1] {
                show(&format!("{what} {flags}"), settime(flags, &raw const odd, null_mut()));
                show(&format!("{what} set {flags}"), settime(flags, &set(0, 0), null_mut()));
            }
            show(&format!("{what} to nothing"), settime(0, null(), null_mut()));
            show(&format!("{what} to an address that is none"), settime(0, bad, null_mut()));
            show(&format!("{what} with a bad old setting"), settime(0, &set(9_000, 7), bad));
            // It is set all the same.
            show(&format!("{what} after that"), settime(0, &set(0, 5), &raw mut old));
            show(&format!("{what}'s interval"), old.it_interval.tv_sec);
            show(&format!("{what} disarmed"), settime(0, &set(0, 0), &raw mut old));
            show(&format!("{what}'s interval then"), old.it_interval.tv_sec);
        }
        show("a bad descriptor", unsafe {
            libc::syscall(libc::SYS_timerfd_settime, 0, 9, number(&raw const old), 0)
        });
        let bad_alarm = without_provenance_mut::<libc::itimerval>(8);
        let new = libc::itimerval {
            it_interval: libc::timeval { tv_sec: 7, tv_usec: 0 },
            it_value: libc::timeval { tv_sec: 9_000, tv_usec: 0 },
        };
        show("setitimer", unsafe { libc::setitimer(0, &raw const new, bad_alarm) }.into());
        show("alarm after that", (unsafe { libc::alarm(0) } > 8_990).into());
    });
}

extern "C" fn handle(_: c_int) {}

#[test]
fn an_interrupted_sleep_with_a_bad_rest_fails() {
    is_as_native(&[], || {
        in_child(|| {
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handle as extern "C" fn(_) as usize;
            unsafe { libc::sigaction(libc::SIGALRM, &raw const action, null_mut()) };
            let second = spec(1);
            for (rest, what) in [(0, "no rest"), (8, "a bad rest")] {
                let new = libc::itimerval {
                    it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
                    it_value: libc::timeval { tv_sec: 0, tv_usec: 100_000 },
                };
                unsafe { libc::setitimer(0, &raw const new, null_mut()) };
                show(what, unsafe { libc::syscall(libc::SYS_nanosleep, &raw const second, rest) });
            }
        });
    });
}

static OVERRUN: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);

/// Keeps the overrun, which glibc's structure has behind the number of the timer.
extern "C" fn take(_: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let overrun = unsafe { *info.cast::<c_int>().add(5) };
    OVERRUN.store(overrun, std::sync::atomic::Ordering::Relaxed);
}

#[test]
fn overruns_are_counted_when_the_signal_is_taken() {
    is_as_native(&[], || {
        in_child(|| {
            let signal = libc::SIGRTMIN() + 3;
            let set = block(&[signal]);
            let mask = |how| unsafe { libc::sigprocmask(how, &raw const set, null_mut()) };
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = take as extern "C" fn(_, _, _) as usize;
            action.sa_flags = libc::SA_SIGINFO;
            unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
            let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
            (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_SIGNAL, signal);
            let mut timer = null_mut();
            assert_eq!(unsafe { libc::timer_create(1, &raw mut event, &raw mut timer) }, 0);
            let arm = |tv_nsec| {
                let time = timespec { tv_sec: 0, tv_nsec };
                let new = itimerspec { it_interval: time, it_value: time };
                assert_eq!(unsafe { libc::timer_settime(timer, 0, &raw const new, null_mut()) }, 0);
            };
            let overrun = || unsafe { libc::timer_getoverrun(timer) };
            let wait = || {
                let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
                assert_eq!(unsafe { libc::sigwaitinfo(&raw const set, &raw mut info) }, signal);
                unsafe { *(&raw const info).cast::<c_int>().add(5) }
            };
            arm(200_000_000);
            std::thread::sleep(Duration::from_millis(700));
            show("before it is taken", overrun().into());
            show("by sigwaitinfo", wait().into());
            show("two expiries", overrun().into());
            show("by the next", wait().into());
            show("none", overrun().into());
            arm(200_000_000);
            std::thread::sleep(Duration::from_millis(900));
            mask(libc::SIG_UNBLOCK);
            show("by a handler", OVERRUN.load(std::sync::atomic::Ordering::Relaxed).into());
            show("three", overrun().into());
            arm(0);
            mask(libc::SIG_BLOCK);
            // An interval that is shorter than any look.
            arm(1);
            std::thread::sleep(Duration::from_millis(500));
            arm(0);
            mask(libc::SIG_UNBLOCK);
            mask(libc::SIG_BLOCK);
            arm(100);
            std::thread::sleep(Duration::from_millis(500));
            wait();
            show("five millions", (overrun() >= 4_999_990).into());
        });
    });
}

#[test]
fn a_time_namespace_in_the_tree_has_its_own_clocks() {
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can make a time namespace");
        return;
    }
    let unshare = ["unshare", "--time", "--monotonic", "8640000", "--boottime", "17280000"];
    is_as_native(&unshare, || {
        let shows = |what: &str| {
            for (clock, ahead) in [(1, 100), (4, 100), (6, 100), (7, 200)] {
                for read in [now_by_call, now] {
                    show(&format!("{what}: clock {clock}"), read(clock).tv_sec / 86_400 / ahead);
                }
            }
        };
        shows("the first process");
        for clock in [1, 7] {
            let before = now(clock).tv_sec;
            let until = spec(before + 2);
            let sleep = unsafe {
                libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, &raw const until, null_mut())
            };
            show("an absolute sleep", sleep.into());
            show("its seconds", now(clock).tv_sec - before);
            let fd = unsafe { libc::timerfd_create(clock, 0) };
            let until = spec(before + 4);
            let new = itimerspec { it_interval: spec(0), it_value: until };
            let at = libc::TFD_TIMER_ABSTIME;
            show(
                "a timer",
                unsafe { libc::timerfd_settime(fd, at, &raw const new, null_mut()) }.into(),
            );
            let mut count = 0_u64;
            show("read", unsafe { libc::read(fd, (&raw mut count).cast(), 8) } as c_long);
            show("its seconds", now(clock).tv_sec - before);
        }
        shows("after that");
        in_child(|| {
            // A fork after another unshare(2) has its parent's vDSO, but other clocks.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWTIME) }, 0);
            let offsets = "monotonic 25920000 0\nboottime 51840000 0";
            std::fs::write("/proc/self/timens_offsets", offsets).unwrap();
            in_child(|| {
                let now = [now_by_call(1), now(1), now_by_call(7), now(7)];
                println!("a fork's days = {:?}", now.map(|now| now.tv_sec / 8_640_000));
            });
        });
    });
}
