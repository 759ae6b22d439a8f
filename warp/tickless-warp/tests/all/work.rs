//! Work that is under way while every thread sleeps: the clock must not jump over it.

use crate::harness::{Place, block, inside, inside_each, spec, takes, wait_alone};
use libc::c_long;
use std::io::Read;
use std::ptr::null;
use std::time::{Duration, Instant};

/// Sets an alarm that would end the process, makes `calls` calls, and computes for a while. The
/// alarm is still far away then, in virtual time too.
fn outruns_an_alarm(what: &str, calls: u32, call: impl Fn()) {
    const AHEAD: u32 = 1_000;
    unsafe { libc::alarm(AHEAD) };
    takes(what, 0.0, || (0..calls).for_each(|_| call()));
    assert!(unsafe { libc::alarm(0) } >= AHEAD - 2, "{what}");
}

#[test]
fn a_wait_of_no_time_does_not_move_the_clock() {
    inside_each(&[Place::Plain, Place::Namespace], || {
        let call = libc::syscall;
        let set = block(&[libc::SIGUSR2]);
        let semaphore = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        let op = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
        let word = 1_u64;
        let epoll = unsafe { libc::epoll_create1(0) };
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let (e, w, no) = (&raw mut event, &raw const word, null::<u8>());
        let waiter = [1_u64, w.addr() as u64, 2 | 128];
        let past = spec(1);
        for nanos in [0, 1] {
            let time = libc::timespec { tv_sec: 0, tv_nsec: nanos };
            let micros = libc::timeval { tv_sec: 0, tv_usec: nanos };
            // The kernel writes to the times of some calls.
            let (t, p) = (&raw const time, &raw const past);
            let own = || (Box::into_raw(Box::new(time)), Box::into_raw(Box::new(micros)));
            let calls: &[(&str, &dyn Fn() -> c_long)] = unsafe {
                &[
                    ("nanosleep", &|| call(libc::SYS_nanosleep, t, no)),
                    ("clock_nanosleep", &|| call(libc::SYS_clock_nanosleep, 0, 0, t, no)),
                    ("futex", &|| call(libc::SYS_futex, w, libc::FUTEX_WAIT, 1, t, no, 0)),
                    ("futex_bitset", &|| {
                        call(libc::SYS_futex, w, libc::FUTEX_WAIT_BITSET, 1, p, no, 1)
                    }),
                    ("futex_waitv", &|| call(libc::SYS_futex_waitv, waiter.as_ptr(), 1, 0, p, 1)),
                    ("poll", &|| call(libc::SYS_poll, no, 0, nanos)),
                    ("ppoll", &|| call(libc::SYS_ppoll, no, 0, own().0, no, 8)),
                    ("select", &|| call(libc::SYS_select, 0, no, no, no, own().1)),
                    ("pselect6", &|| call(libc::SYS_pselect6, 0, no, no, no, own().0, no)),
                    ("epoll_wait", &|| call(libc::SYS_epoll_wait, epoll, e, 1, nanos)),
                    ("epoll_pwait2", &|| call(libc::SYS_epoll_pwait2, epoll, e, 1, t, no, 8)),
                    ("sigtimedwait", &|| call(libc::SYS_rt_sigtimedwait, &raw const set, no, t, 8)),
                    ("semtimedop", &|| call(libc::SYS_semtimedop, semaphore, &raw const op, 1, t)),
                ]
            };
            for (name, call) in calls {
                outruns_an_alarm(name, 100, || {
                    call();
                });
            }
        }
        unsafe { libc::semctl(semaphore, 0, libc::IPC_RMID) };
    });
}

#[test]
fn a_poll_for_what_comes_from_outside_holds_the_clock() {
    inside_each(&[Place::Pipeline, Place::PipelineToNamespace], || {
        let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
        let epoll = unsafe { libc::epoll_create1(0) };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (p, e, time) = (&raw mut poll, &raw mut event, spec(50));
        wait_alone();
        assert_eq!(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, 0, e) }, 0);
        let waits: [(&str, &dyn Fn() -> libc::c_int); 3] = unsafe {
            [
                ("poll", &|| libc::poll(p, 1, 50_000)),
                ("ppoll", &|| libc::ppoll(p, 1, &raw const time, null())),
                ("epoll_wait", &|| libc::epoll_wait(epoll, e, 1, 50_000)),
            ]
        };
        for (name, wait) in waits {
            outruns_an_alarm(name, 1, || assert_eq!(wait(), 1, "{name}"));
            std::io::stdin().read_exact(&mut [0]).unwrap();
        }
        unsafe { libc::fcntl(7, libc::F_SETFL, libc::O_NONBLOCK) };
        for _ in 0..3 {
            while unsafe { libc::write(7, [b'x'; 4096].as_ptr().cast(), 4096) } > 0 {}
            let mut poll = libc::pollfd { fd: 7, events: libc::POLLOUT, revents: 0 };
            let p = &raw mut poll;
            outruns_an_alarm("a full pipe", 1, || {
                assert_eq!(unsafe { libc::poll(p, 1, 50_000) }, 1);
            });
        }
        // It is added while another thread waits already.
        let epoll = unsafe { libc::epoll_create1(0) };
        let waiter = std::thread::spawn(move || {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            assert_eq!(unsafe { libc::epoll_wait(epoll, &raw mut event, 1, -1) }, 1);
            Instant::now()
        });
        std::thread::sleep(Duration::from_secs(5));
        let start = Instant::now();
        assert_eq!(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, 0, e) }, 0);
        std::thread::sleep(Duration::from_secs(50));
        assert!(waiter.join().unwrap() - start < Duration::from_secs(10));
    });
}

#[test]
fn processes_that_go_on_after_a_stop_hold_the_clock() {
    inside(|| {
        let status_of = |child, options| {
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, options) }, child);
            status
        };
        outruns_an_alarm("a process that goes on", 30, || {
            let child = unsafe { libc::fork() };
            if child == 0 {
                unsafe { libc::raise(libc::SIGSTOP) };
                unsafe { libc::_exit(3) };
            }
            assert!(libc::WIFSTOPPED(status_of(child, libc::WUNTRACED)));
            unsafe { libc::kill(child, libc::SIGCONT) };
            assert_eq!(libc::WEXITSTATUS(status_of(child, 0)), 3);
        });
        // It would run unseen.
        let flags = libc::CLONE_UNTRACED | libc::SIGCHLD;
        assert_eq!(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) }, -1);
        // So would what is submitted to a disk by io_submit(2).
        let mut context = 0_u64;
        assert_eq!(unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) }, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
    });
}

/// A thread computes, and passes its result on through threads that wait in calls which name no
/// time. The clock must not jump to the timeout of the last one.
#[test]
fn work_is_done_before_a_timeout() {
    inside(|| {
        let start = Instant::now();
        // Of more than a few threads, an eBPF program counts the wakeups, as root.
        for threads in [4, 40] {
            let (send, mut receive) = std::sync::mpsc::channel::<u64>();
            for _ in 0..threads {
                let (next, after) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    for value in receive {
                        let sum: u64 = (0..2_000).map(|n| std::hint::black_box(n ^ value)).sum();
                        next.send(sum % 1_000).unwrap();
                    }
                });
                receive = after;
            }
            for _ in 0..200 {
                std::thread::sleep(Duration::from_millis(1));
                send.send(1).unwrap();
                receive.recv_timeout(Duration::from_secs(5)).unwrap();
            }
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    });
}
