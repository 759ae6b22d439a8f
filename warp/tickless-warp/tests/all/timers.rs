//! Timers that programs set.

use crate::harness::{block, in_child, inside, spec, takes};
use libc::{c_int, itimerspec, timespec};
use std::ptr::null_mut;
use std::time::Duration;

fn setting(value: i64, interval: i64) -> itimerspec {
    itimerspec { it_interval: spec(interval), it_value: spec(value) }
}

fn read_count(fd: c_int) -> u64 {
    let mut count = 0_u64;
    assert_eq!(unsafe { libc::read(fd, (&raw mut count).cast(), 8) }, 8);
    count
}

#[test]
fn descriptors_expire_at_their_times() {
    inside(|| {
        for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME, libc::CLOCK_BOOTTIME] {
            let fd = unsafe { libc::timerfd_create(clock, 0) };
            let set = |new: &itimerspec, flags| {
                let mut old = setting(99, 99);
                assert_eq!(unsafe { libc::timerfd_settime(fd, flags, new, &raw mut old) }, 0);
                old
            };
            set(&setting(60, 10), 0);
            takes("the first expiry", 60.0, || assert_eq!(read_count(fd), 1));
            takes("the second", 10.0, || assert_eq!(read_count(fd), 1));
            std::thread::sleep(Duration::from_secs(35));
            takes("three that were not read", 0.0, || assert_eq!(read_count(fd), 3));
            let mut now = setting(0, 0);
            assert_eq!(unsafe { libc::timerfd_gettime(fd, &raw mut now) }, 0);
            assert_eq!((now.it_value.tv_sec, now.it_interval.tv_sec), (4, 10));
            // A child shares it, and so does a copy of the descriptor.
            let copy = unsafe { libc::dup(fd) };
            let old = set(&setting(5, 0), 0);
            assert_eq!((old.it_value.tv_sec, old.it_interval.tv_sec), (4, 10));
            takes("by the copy", 5.0, || assert_eq!(read_count(copy), 1));
            set(&setting(5, 0), 0);
            let child = unsafe { libc::fork() };
            if child == 0 {
                unsafe { libc::_exit(read_count(fd) as c_int + 40) };
            }
            let mut status = 0;
            takes("by the child", 5.0, || unsafe { libc::waitpid(child, &raw mut status, 0) });
            assert_eq!(libc::WEXITSTATUS(status), 41);
            // Disarmed, absolute, and absolute in the past.
            set(&setting(5, 0), 0);
            set(&setting(0, 0), 0);
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            assert_eq!(unsafe { libc::poll(&raw mut poll, 1, 20_000) }, 0);
            let mut now = spec(0);
            unsafe { libc::clock_gettime(clock, &raw mut now) };
            let at = itimerspec {
                it_value: timespec { tv_sec: now.tv_sec + 7, ..now },
                ..setting(0, 0)
            };
            set(&at, libc::TFD_TIMER_ABSTIME);
            takes("an absolute time", 7.0, || assert_eq!(read_count(fd), 1));
            set(&at, libc::TFD_TIMER_ABSTIME);
            takes("a time in the past", 0.0, || assert_eq!(read_count(fd), 1));
        }
    });
}

#[test]
fn timers_of_processes_expire_at_their_times() {
    inside(|| in_child(processes));
}

fn processes() {
    let signal = libc::SIGRTMIN() + 3;
    let set = block(&[signal, libc::SIGALRM]);
    let wait = || {
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let signal = unsafe { libc::sigwaitinfo(&raw const set, &raw mut info) };
        (signal, info.si_code, unsafe { info.si_value() }.sival_ptr.addr())
    };
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = signal;
    event.sigev_value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(77) };
    let mut timer = null_mut();
    let create = |event: *mut libc::sigevent, timer: &mut libc::timer_t| {
        assert_eq!(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, event, timer) }, 0);
    };
    create(&raw mut event, &mut timer);
    let arm = |timer, new: &itimerspec| {
        assert_eq!(unsafe { libc::timer_settime(timer, 0, new, null_mut()) }, 0);
    };
    arm(timer, &setting(60, 10));
    // SI_TIMER
    takes("the first signal", 60.0, || assert_eq!(wait(), (signal, -2, 77)));
    takes("the second", 10.0, || assert_eq!(wait(), (signal, -2, 77)));
    let mut now = setting(0, 0);
    assert_eq!(unsafe { libc::timer_gettime(timer, &raw mut now) }, 0);
    assert_eq!((now.it_value.tv_sec, now.it_interval.tv_sec), (9, 10));
    assert_eq!(unsafe { libc::timer_delete(timer) }, 0);
    assert_eq!(unsafe { libc::timer_gettime(timer, &raw mut now) }, -1);
    create(null_mut(), &mut timer);
    arm(timer, &setting(5, 0));
    takes("without an event", 5.0, || assert_eq!(wait().0, libc::SIGALRM));
    // A timer of CPU time stays the kernel's.
    event.sigev_notify = libc::SIGEV_NONE;
    let clock = libc::CLOCK_PROCESS_CPUTIME_ID;
    assert_eq!(unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) }, 0);
    arm(timer, &setting(1_000, 0));
    std::thread::sleep(Duration::from_secs(5_000));
    assert_eq!(unsafe { libc::timer_gettime(timer, &raw mut now) }, 0);
    assert!(now.it_value.tv_sec >= 900);
}

#[test]
fn alarms_expire_at_their_times() {
    inside(|| in_child(alarms));
}

fn alarms() {
    let set = block(&[libc::SIGALRM]);
    let wait = || unsafe { libc::sigwaitinfo(&raw const set, null_mut()) };
    assert_eq!(unsafe { libc::alarm(60) }, 0);
    std::thread::sleep(Duration::from_secs(20));
    assert_eq!(unsafe { libc::alarm(30) }, 40);
    takes("the alarm", 30.0, || assert_eq!(wait(), libc::SIGALRM));
    assert_eq!(unsafe { libc::alarm(0) }, 0);
    let value = |seconds| libc::timeval { tv_sec: seconds, tv_usec: 0 };
    let new = libc::itimerval { it_interval: value(2), it_value: value(5) };
    let mut old = new;
    let real = libc::ITIMER_REAL;
    assert_eq!(unsafe { libc::setitimer(real, &raw const new, &raw mut old) }, 0);
    assert_eq!((old.it_value.tv_sec, old.it_value.tv_usec), (0, 0));
    takes("the first", 5.0, wait);
    takes("the second", 2.0, wait);
    assert_eq!(unsafe { libc::getitimer(real, &raw mut old) }, 0);
    assert_eq!((old.it_value.tv_sec, old.it_interval.tv_sec), (1, 2));
}
