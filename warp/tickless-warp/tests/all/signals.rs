//! Signals that interrupt waits.

use crate::harness::{block, inside, takes};
use libc::{c_int, timespec};
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn handle(_: c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Handles SIGUSR1, and sends it to this thread after some seconds.
fn signal_after(seconds: u64, signal: c_int) -> std::thread::JoinHandle<()> {
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as extern "C" fn(_) as usize;
    action.sa_flags = libc::SA_RESTART;
    unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, null_mut()) };
    let target = unsafe { libc::pthread_self() };
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        unsafe { libc::pthread_kill(target, signal) };
    })
}

fn is_interrupted(result: c_int) -> bool {
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}

#[test]
fn a_signal_with_a_handler_ends_a_wait() {
    inside(|| {
        let ten = timespec { tv_sec: 10, tv_nsec: 0 };
        let interrupts = |what, call: &mut dyn FnMut() -> c_int| {
            let sender = signal_after(3, libc::SIGUSR1);
            takes(what, 3.0, || assert!(is_interrupted(call())));
            sender.join().unwrap();
        };
        for rounds in 1..=20 {
            let mut left = timespec { tv_sec: 99, tv_nsec: 99 };
            let p = &raw mut left;
            interrupts("nanosleep", &mut || unsafe { libc::nanosleep(&raw const ten, p) });
            assert!((6..=7).contains(&left.tv_sec), "{} s are left", left.tv_sec);
            interrupts("poll", &mut || unsafe { libc::poll(null_mut(), 0, 10_000) });
            let (mut value, none) = (libc::timeval { tv_sec: 10, tv_usec: 0 }, null_mut());
            let p = &raw mut value;
            interrupts("select", &mut || unsafe { libc::select(0, none, none, none, p) });
            assert!((6..=7).contains(&value.tv_sec), "{} s are left", value.tv_sec);
            let (word, op, time) = (AtomicU32::new(0), libc::FUTEX_WAIT, &raw const ten);
            interrupts("futex", &mut || unsafe {
                libc::syscall(libc::SYS_futex, word.as_ptr(), op, 0, time) as c_int
            });
            assert_eq!(HANDLED.load(Ordering::Relaxed), 4 * rounds);
        }
    });
}

/// Goal: a signal that came long ago, and that only the call lets through, ends the call at once.
#[test]
fn a_signal_that_only_the_call_lets_through_ends_it() {
    inside(|| {
        let ten = timespec { tv_sec: 10, tv_nsec: 0 };
        let none = block(&[]);
        block(&[libc::SIGUSR1]);
        let interrupts = |what, call: &mut dyn FnMut() -> c_int| {
            signal_after(0, libc::SIGUSR1).join().unwrap();
            for _ in 0..20 {
                std::thread::sleep(Duration::from_secs(1));
            }
            takes(what, 0.0, || assert!(is_interrupted(call())));
        };
        for _ in 0..20 {
            let (p, time, mask) = (null_mut(), &raw const ten, &raw const none);
            interrupts("ppoll", &mut || unsafe { libc::ppoll(p, 0, time, mask) });
            let none = null_mut();
            interrupts("pselect", &mut || unsafe {
                libc::pselect(0, none, none, none, time, mask)
            });
        }
    });
}
