//! Every call that waits for a time, and every clock.

use crate::harness::{
    Place, in_child, inside, inside_each, now, now_by_call, spec, takes, wait_alone,
};
use libc::{c_int, c_long, timespec};
use rustix::thread::sched_getaffinity;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A time of a clock, so many seconds from now.
fn at(clock: c_int, seconds: i64) -> timespec {
    let now = now(clock);
    timespec { tv_sec: now.tv_sec + seconds, ..now }
}

/// Checks that a call fails with an error after a minute.
fn fails(what: &str, error: c_int, call: impl FnOnce() -> c_long) {
    let result = takes(what, 60.0, || (call(), io::Error::last_os_error().raw_os_error()));
    assert_eq!(result, (-1, Some(error)), "{what}");
}

fn returns_zero(what: &str, call: impl FnOnce() -> c_long) {
    assert_eq!(takes(what, 60.0, call), 0, "{what}");
}

#[test]
fn every_sleep_ends_at_its_time() {
    inside(|| {
        let minute = spec(60);
        let p = &raw const minute;
        returns_zero("nanosleep", || unsafe { libc::nanosleep(p, null_mut()) }.into());
        for clock in [0, 1, 7, 11] {
            let sleep = |flags, time: &timespec| unsafe {
                c_long::from(libc::clock_nanosleep(clock, flags, time, null_mut()))
            };
            returns_zero("clock_nanosleep", || sleep(0, &minute));
            returns_zero("an absolute clock_nanosleep", || {
                sleep(libc::TIMER_ABSTIME, &at(clock, 60))
            });
            takes("sleep into the past", 0.0, || {
                assert_eq!(sleep(libc::TIMER_ABSTIME, &at(clock, -5)), 0);
            });
        }
        std::thread::sleep(std::time::Duration::from_secs(86_400));
    });
}

#[test]
fn the_deadline_of_a_wait_that_has_ended_ends_no_other_wait() {
    inside_each(&[Place::Plain, Place::Namespace], || {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let fd = far.as_raw_fd();
        let poll = |ms| {
            let mut at = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            unsafe { libc::poll(&raw mut at, 1, ms) }
        };
        for _ in 0..10 {
            let ((ping, pings), (pong, pongs), (wake, woken)) = (channel(), channel(), channel());
            near.write_all(&[0]).unwrap();
            std::thread::scope(|scope| {
                let (far, poll) = (&mut far, &poll);
                scope.spawn(move || {
                    assert_eq!(poll(50), 1, "its event was there already");
                    far.read_exact(&mut [0]).unwrap();
                    woken.recv().unwrap();
                    assert_eq!(takes("poll", 5.0, || poll(5_000)), 0);
                });
                // Until long after the first deadline, one of these two threads runs at any time,
                // but often another one than a moment ago.
                scope.spawn(move || pings.iter().for_each(|()| pong.send(()).unwrap()));
                let start = Instant::now();
                while start.elapsed().as_millis() < 100 {
                    ping.send(()).unwrap();
                    pongs.recv().unwrap();
                    if start.elapsed().as_millis() > 20 {
                        let _ = wake.send(()); // The thread takes only the first one.
                    }
                }
                drop(ping);
            });
        }
    });
}

#[test]
fn a_wait_with_the_arguments_of_the_one_before_has_its_own_deadline() {
    inside_each(&[Place::Plain, Place::Namespace], || {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let fd = far.as_raw_fd();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut at = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                // Unused arguments are zero, too, so that the two waits look alike.
                let mut poll =
                    || unsafe { libc::syscall(libc::SYS_poll, &raw mut at, 1, 100, 0, 0, 0) };
                assert_eq!(poll(), 1);
                far.read_exact(&mut [0]).unwrap();
                assert_eq!(takes("the second poll", 0.1, poll), 0);
            });
            // The clock jumps, so the deadline of the first wait is known.
            std::thread::sleep(Duration::from_millis(20));
            near.write_all(&[0]).unwrap();
            // That deadline comes while this thread runs: no census finds that the wait has ended.
            let start = Instant::now();
            while start.elapsed().as_millis() < 200 {}
        });
    });
}

#[test]
fn every_poll_ends_at_its_time() {
    inside_each(&[Place::Plain, Place::Namespace], || {
        let (near, _far) = UnixDatagram::pair().unwrap();
        let fd = near.as_raw_fd();
        // The event is one that an earlier call has found.
        let stale = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: libc::POLLIN };
        let mut polls = [stale(fd), stale(-1)];
        let poll = polls.as_mut_ptr();
        for _ in 0..2 {
            unsafe { poll.write(stale(fd)) };
            returns_zero("poll", || unsafe { libc::poll(poll, 2, 60_000) }.into());
            assert_eq!(unsafe { poll.read() }.revents, 0);
            wait_alone();
        }
        let mut time = spec(60);
        let p = &raw mut time;
        // The system call stores the time that is left; the function of the library does not.
        returns_zero("ppoll", || unsafe {
            libc::syscall(libc::SYS_ppoll, poll, 1, p, null::<u8>(), 8)
        });
        assert_eq!((time.tv_sec, time.tv_nsec), (0, 0));
        let mut value = libc::timeval { tv_sec: 60, tv_usec: 0 };
        let v = &raw mut value;
        let none = null_mut();
        let mut set: libc::fd_set = unsafe { std::mem::zeroed() };
        unsafe { libc::FD_SET(fd, &raw mut set) };
        let s = &raw mut set;
        returns_zero("select", || unsafe { libc::select(fd + 1, s, none, s, v) }.into());
        assert_eq!((value.tv_sec, value.tv_usec), (0, 0));
        assert!(!unsafe { libc::FD_ISSET(fd, &raw const set) });
        let minute = spec(60);
        let p = &raw const minute;
        returns_zero("pselect", || unsafe { libc::pselect(0, none, none, none, p, null()) }.into());
        let epoll = unsafe { libc::epoll_create1(0) };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 7 };
        let e = &raw mut event;
        assert_eq!(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, e) }, 0);
        returns_zero("epoll_wait", || unsafe { libc::epoll_wait(epoll, e, 1, 60_000) }.into());
        returns_zero("epoll_pwait", || {
            unsafe { libc::epoll_pwait(epoll, e, 1, 60_000, null()) }.into()
        });
        returns_zero("epoll_pwait2", || unsafe {
            libc::syscall(libc::SYS_epoll_pwait2, epoll, e, 1, p, null::<u8>(), 8)
        });
        // What is ready at once does not wait.
        let (reader, writer) = UnixDatagram::pair().unwrap();
        writer.send(&[1]).unwrap();
        let fd = reader.as_raw_fd();
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, e) };
        for (fd, events, found) in [
            (fd, libc::POLLIN, libc::POLLIN),
            (fd, libc::POLLOUT, libc::POLLOUT),
            (epoll, libc::POLLIN, libc::POLLIN),
            (1_000, 0, libc::POLLNVAL),
        ] {
            let mut ready = libc::pollfd { fd, events, revents: 0 };
            let at = &raw mut ready;
            wait_alone();
            takes("a ready poll", 0.0, || assert_eq!(unsafe { libc::poll(at, 1, 60_000) }, 1));
            assert_eq!(ready.revents, found);
            wait_alone();
            takes("a ready ppoll", 0.0, || assert_eq!(unsafe { libc::ppoll(at, 1, p, null()) }, 1));
        }
        wait_alone();
        takes("a ready epoll", 0.0, || {
            assert_eq!(unsafe { libc::epoll_wait(epoll, e, 1, 60_000) }, 1);
        });
        wait_alone();
        unsafe { libc::FD_SET(fd, s) };
        takes("a ready select", 0.0, || {
            assert_eq!(unsafe { libc::pselect(fd + 1, s, none, none, p, null()) }, 1);
        });
    });
}

#[test]
fn every_futex_wait_ends_at_its_time() {
    inside(|| {
        static WORD: AtomicU32 = AtomicU32::new(1);
        let word = WORD.as_ptr();
        let minute = spec(60);
        let futex = |op: c_int, value: u32, time: &timespec| unsafe {
            libc::syscall(libc::SYS_futex, word, op, value, time, null::<u32>(), u32::MAX)
        };
        let realtime = libc::FUTEX_CLOCK_REALTIME;
        let timed_out = libc::ETIMEDOUT;
        fails("FUTEX_WAIT", timed_out, || futex(libc::FUTEX_WAIT, 1, &minute));
        for (op, clock) in [(libc::FUTEX_WAIT_BITSET, 1), (libc::FUTEX_WAIT_BITSET | realtime, 0)] {
            fails("FUTEX_WAIT_BITSET", timed_out, || futex(op, 1, &at(clock, 60)));
        }
        // Often, because the tracer does not try each time whether only the deadline can end it.
        takes("a word of another value", 0.0, || {
            for _ in 0..40 {
                assert_eq!(futex(libc::FUTEX_WAIT, 2, &minute), -1);
                assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EAGAIN));
            }
        });
        // A lock that another thread holds.
        std::thread::scope(|scope| {
            static LOCK: AtomicU32 = AtomicU32::new(0);
            let lock = |op: c_int, time: Option<&timespec>| unsafe {
                let time = time.map_or(null(), |time| &raw const *time);
                libc::syscall(libc::SYS_futex, LOCK.as_ptr(), op, 0, time, null::<u32>(), 0)
            };
            scope.spawn(move || {
                assert_eq!(lock(libc::FUTEX_LOCK_PI, None), 0);
                std::thread::sleep(std::time::Duration::from_secs(300));
                assert_eq!(lock(libc::FUTEX_UNLOCK_PI, None), 0);
            });
            while LOCK.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            fails("FUTEX_LOCK_PI", timed_out, || lock(libc::FUTEX_LOCK_PI, Some(&at(0, 60))));
            fails("FUTEX_LOCK_PI2", timed_out, || lock(libc::FUTEX_LOCK_PI2, Some(&at(1, 60))));
        });
        let waiter = [1_u64, word.addr() as u64, 2 | 128];
        let until = at(1, 60);
        let wait = || unsafe {
            libc::syscall(libc::SYS_futex_waitv, waiter.as_ptr(), 1, 0, &raw const until, 1)
        };
        fails("futex_waitv", timed_out, wait);
        let (op, until, other) = (libc::FUTEX_WAIT_REQUEUE_PI, at(1, 60), AtomicU32::new(0));
        fails("FUTEX_WAIT_REQUEUE_PI", timed_out, || unsafe {
            libc::syscall(libc::SYS_futex, word, op, 1, &raw const until, other.as_ptr(), 0)
        });
        // futex_wait(2), since Linux 6.7.
        let (word, until) = (word.addr() as u64, at(1, 60));
        let wait =
            |value: u64| unsafe { libc::syscall(455, word, value, 1, 2, &raw const until, 1) };
        wait(2);
        if io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) {
            fails("futex_wait", timed_out, || wait(1));
        }
    });
}

#[test]
fn every_wait_for_a_queue_ends_at_its_time() {
    inside(|| {
        let name = format!("/tickless-warp-{}\0", std::process::id());
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        (attributes.mq_maxmsg, attributes.mq_msgsize) = (1, 8);
        let flags = libc::O_RDWR | libc::O_CREAT;
        let queue =
            unsafe { libc::mq_open(name.as_ptr().cast(), flags, 0o600, &raw mut attributes) };
        unsafe { libc::mq_unlink(name.as_ptr().cast()) };
        let mut bytes = [0; 8];
        fails("mq_timedreceive", libc::ETIMEDOUT, || unsafe {
            libc::mq_timedreceive(queue, bytes.as_mut_ptr(), 8, null_mut(), &at(0, 60)) as c_long
        });
        assert_eq!(unsafe { libc::mq_send(queue, bytes.as_ptr(), 8, 0) }, 0);
        fails("mq_timedsend", libc::ETIMEDOUT, || {
            unsafe { libc::mq_timedsend(queue, bytes.as_ptr(), 8, 0, &at(0, 60)) }.into()
        });
    });
}

#[test]
fn a_wait_that_is_jumped_over_takes_one_switch_and_leaves_the_next_call_alone() {
    inside(|| {
        in_child(|| {
            let poll = |ms| unsafe { libc::poll(null_mut(), 0, ms) };
            let switches = || -> u64 {
                let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
                let line =
                    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
                line.unwrap().trim().parse().unwrap()
            };
            let before = switches();
            (0..1_000).for_each(|_| assert_eq!(poll(1_000), 0));
            let took = switches() - before;
            assert!(took < 1_500, "{took} switches for 1,000 waits");
            // The tracer keeps the thread on one CPU meanwhile, which no call of the thread shows.
            let cpus = sched_getaffinity(None).unwrap();
            wait_alone();
            assert_eq!(sched_getaffinity(None).unwrap(), cpus);
            in_child(wait_alone);
            // Calls of 32-bit programs have numbers of their own, of which this one is waitpid's.
            let answer: c_int;
            wait_alone();
            unsafe {
                std::arch::asm!(
                    "xchg rbx, {of}",
                    "int 0x80",
                    "xchg rbx, {of}",
                    of = inout(reg) -1_i64 => _,
                    inout("eax") libc::SYS_poll as c_int => answer,
                    in("rcx") 0,
                    in("rdx") 1_000,
                    in("rdi") 0,
                    in("rsi") 0,
                    out("r8") _,
                    out("r9") _,
                    out("r10") _,
                    out("r11") _,
                );
            }
            assert_eq!(answer, -libc::EINVAL);
            // A filter of the program's own, that refuses a poll of two seconds.
            let op = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
            let denied = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
            let mut filter = [
                op(0x20, 0, 0),
                op(0x15, 3, libc::SYS_poll as u32),
                op(0x20, 0, 32),
                op(0x15, 1, 2_000),
                op(6, 0, denied),
                op(6, 0, libc::SECCOMP_RET_ALLOW),
            ];
            let program = libc::sock_fprog { len: 6, filter: filter.as_mut_ptr() };
            let (mode, by) = (libc::SECCOMP_MODE_FILTER, &raw const program);
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, by) }, 0);
            wait_alone();
            assert_eq!(poll(2_000), -1);
            assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EPERM));
        });
    });
}

#[test]
fn a_wait_of_no_time_moves_a_frozen_clock() {
    let done = inside_each(&[Place::Frozen], || {
        let epoll = unsafe { libc::epoll_create1(0) };
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let e = &raw mut event;
        let none = null_mut();
        let waits: [&dyn Fn() -> c_int; 5] = [
            &|| unsafe { libc::nanosleep(&spec(0), null_mut()) },
            &|| unsafe { libc::poll(null_mut(), 0, 0) },
            &|| unsafe { libc::ppoll(null_mut(), 0, &spec(0), null()) },
            &|| unsafe {
                libc::select(0, none, none, none, &mut libc::timeval { tv_sec: 0, tv_usec: 0 })
            },
            &|| unsafe { libc::epoll_wait(epoll, e, 1, 0) },
        ];
        for wait in waits {
            let start = Instant::now();
            // As Ruby does: until the clock is past the end of a sleep of no time.
            while Instant::now() == start {
                assert_eq!(wait(), 0);
            }
        }
    });
    assert!(done.iter().all(|done| done.passed() < 0.001));
}

#[test]
fn clocks_agree_by_vdso_and_system_call() {
    inside_each(&[Place::Plain, Place::Frozen], || {
        let latest = [0, 1, 4, 5, 6, 7, 11].map(|clock: c_int| (clock, AtomicI64::new(0)));
        // No reading, of either kind, is before one that any thread has made.
        let read_all = |thread| {
            for round in 0..200 {
                for (clock, latest) in &latest {
                    for read in [now as fn(c_int) -> timespec, now_by_call, now] {
                        let before = latest.load(Ordering::SeqCst);
                        let now = read(*clock);
                        let now = now.tv_sec * 1_000_000_000 + now.tv_nsec;
                        assert!(now >= before, "clock {clock}: {now} after {before}");
                        latest.fetch_max(now, Ordering::SeqCst);
                    }
                }
                if (round + thread) % 10 == 0 {
                    takes("a sleep of an hour", 3_600.0, || unsafe { libc::sleep(3_600) });
                }
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|thread| _ = scope.spawn(move || read_all(thread)))
        });
        let mut value = libc::timeval { tv_sec: 0, tv_usec: 0 };
        assert_eq!(unsafe { libc::gettimeofday(&raw mut value, null_mut()) }, 0);
        let seconds = unsafe { libc::time(null_mut()) };
        let real = now(0).tv_sec;
        assert!(value.tv_sec <= seconds && seconds <= real && real - value.tv_sec <= 1);
        // CPU time does not jump.
        assert!(now(libc::CLOCK_PROCESS_CPUTIME_ID).tv_sec < 60);
        // The clock of this tree can be set, without privileges, and deadlines follow it.
        let waiter = std::thread::spawn(|| {
            let until = timespec { tv_sec: 2_000_000_000, tv_nsec: 0 };
            unsafe { libc::clock_nanosleep(0, libc::TIMER_ABSTIME, &raw const until, null_mut()) };
            now(0).tv_sec
        });
        std::thread::sleep(std::time::Duration::from_secs(1));
        let near = timespec { tv_sec: 1_999_999_990, tv_nsec: 0 };
        assert_eq!(unsafe { libc::clock_settime(0, &raw const near) }, 0);
        assert_eq!(takes("the rest", 10.0, || waiter.join().unwrap()), 2_000_000_000);
        let new = libc::timeval { tv_sec: 3_000_000_000, tv_usec: 0 };
        assert_eq!(unsafe { libc::settimeofday(&raw const new, null()) }, 0);
    });
}
