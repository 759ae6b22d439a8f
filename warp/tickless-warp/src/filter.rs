//! What is trapped: a seccomp filter of classic BPF that stops a thread at a system call which
//! names a time, and lets all others run at native speed.
//!
//! The filter decides by arguments where it can see them: a poll(2) that returns at once or waits
//! for ever is not trapped. A sleep, and a call whose timeout is a number, can lead to a notice (a
//! message to the tracer) instead of a stop, because the tracer need not change the thread.
//!
//! Filters can stop a thread for its tracer since Linux 3.5. Since Linux 5.11, the kernel does not
//! run a filter for calls that the filter always allows.

use crate::timeout::SYS_FUTEX_WAIT;
use libc::{c_long, sock_filter as Op};

/// When a system call is trapped.
#[derive(Clone, Copy)]
pub(crate) enum Trap {
    Always,
    /// Trapped if an `int` argument, a timeout in milliseconds, is above zero.
    Positive(u32),
    /// A pointer argument is not null.
    Pointer(u32),
    /// Trapped if the first argument is not a clock of CPU time.
    Clock,
    /// Trapped if the argument is one of these numbers.
    OneOf(u32, &'static [u32]),
    /// Fails with `EINVAL` if the argument has one of these bits.
    Refused(u32, u32),
    /// Trapped if the operation of futex(2) waits and has a timeout.
    Futex,
    /// Trapped if the socket option that the call sets or reads is a timeout.
    SocketTimeout,
    /// The call is not made: it fails with `ENOSYS`, as in a kernel that does not have it.
    Missing,
}

/// Whether calls that only look, because their timeout is the number zero, are trapped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    Pass,
    Trap,
}

/// A system call: its number, its name for the report, and when it is trapped.
pub(crate) type Call = (c_long, &'static str, Trap);

/// The calls that are trapped in all processes.
const CALLS: &[Call] = &[
    (libc::SYS_futex, "futex", Trap::Futex),
    (libc::SYS_epoll_wait, "epoll_wait", Trap::Positive(3)),
    (libc::SYS_epoll_pwait, "epoll_pwait", Trap::Positive(3)),
    (libc::SYS_poll, "poll", Trap::Positive(2)),
    (libc::SYS_ppoll, "ppoll", Trap::Pointer(2)),
    (libc::SYS_epoll_pwait2, "epoll_pwait2", Trap::Pointer(3)),
    (libc::SYS_select, "select", Trap::Pointer(4)),
    (libc::SYS_pselect6, "pselect6", Trap::Pointer(4)),
    (libc::SYS_nanosleep, "nanosleep", Trap::Always),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", Trap::Clock),
    (libc::SYS_clock_gettime, "clock_gettime", Trap::Clock),
    (libc::SYS_gettimeofday, "gettimeofday", Trap::Always),
    (libc::SYS_time, "time", Trap::Always),
    (libc::SYS_futex_waitv, "futex_waitv", Trap::Pointer(3)),
    (SYS_FUTEX_WAIT, "futex_wait", Trap::Pointer(4)),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait", Trap::Always),
    (libc::SYS_semtimedop, "semtimedop", Trap::Pointer(3)),
    (libc::SYS_mq_timedsend, "mq_timedsend", Trap::Pointer(4)),
    (libc::SYS_mq_timedreceive, "mq_timedreceive", Trap::Pointer(4)),
    (libc::SYS_recvmmsg, "recvmmsg", Trap::Pointer(4)),
    (libc::SYS_timerfd_settime, "timerfd_settime", Trap::Always),
    (libc::SYS_timerfd_gettime, "timerfd_gettime", Trap::Always),
    (libc::SYS_timer_create, "timer_create", Trap::Always),
    (libc::SYS_timer_settime, "timer_settime", Trap::Always),
    (libc::SYS_timer_gettime, "timer_gettime", Trap::Always),
    (libc::SYS_timer_getoverrun, "timer_getoverrun", Trap::Always),
    (libc::SYS_timer_delete, "timer_delete", Trap::Always),
    (libc::SYS_setitimer, "setitimer", Trap::Always),
    (libc::SYS_getitimer, "getitimer", Trap::OneOf(0, &[libc::ITIMER_REAL as u32])),
    (libc::SYS_alarm, "alarm", Trap::Always),
    (libc::SYS_setsockopt, "setsockopt", Trap::SocketTimeout),
    (libc::SYS_getsockopt, "getsockopt", Trap::SocketTimeout),
    // A connection perhaps leads to another machine. On loopback, the tracer makes sockets send at
    // once, because data must not wait for a timer of the kernel.
    (libc::SYS_connect, "connect", Trap::Always),
    (libc::SYS_sendto, "sendto", Trap::Pointer(4)),
    (libc::SYS_listen, "listen", Trap::Always),
    (libc::SYS_ioctl, "ioctl", Trap::OneOf(1, &REQUESTS)),
    (libc::SYS_clock_settime, "clock_settime", Trap::Clock),
    (libc::SYS_settimeofday, "settimeofday", Trap::Always),
    (libc::SYS_adjtimex, "adjtimex", Trap::Missing),
    (libc::SYS_clock_adjtime, "clock_adjtime", Trap::Missing),
    // These calls send signals, and a signal can end the sleep of a thread that the tracer holds.
    (libc::SYS_kill, "kill", Trap::Always),
    (libc::SYS_tkill, "tkill", Trap::Always),
    (libc::SYS_tgkill, "tgkill", Trap::Always),
    (libc::SYS_rt_sigqueueinfo, "rt_sigqueueinfo", Trap::Always),
    (libc::SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", Trap::Always),
    (libc::SYS_pidfd_send_signal, "pidfd_send_signal", Trap::Always),
    // From these calls on, the kernel sends signals by itself.
    (libc::SYS_fcntl, "fcntl", Trap::OneOf(1, &SIGNALLING)),
    (libc::SYS_mq_notify, "mq_notify", Trap::Always),
    // The tracer keeps a thread on its own CPU for a while, and the program must not see that.
    (libc::SYS_sched_getaffinity, "sched_getaffinity", Trap::Always),
    (libc::SYS_sched_setaffinity, "sched_setaffinity", Trap::Always),
    // A child without a tracer would run unseen.
    (libc::SYS_clone, "clone", Trap::Refused(0, libc::CLONE_UNTRACED as u32)),
    // Other filters have a say about the calls that the tracer answers.
    (libc::SYS_seccomp, "seccomp", Trap::Always),
    (libc::SYS_prctl, "prctl", Trap::OneOf(0, &[libc::PR_SET_SECCOMP as u32])),
    // Fails, because a thread has one tracer. A message tells why.
    (libc::SYS_ptrace, "ptrace", Trap::Always),
    // What is asked for by these calls would be done by the kernel, while every thread sleeps.
    (libc::SYS_io_uring_setup, "io_uring_setup", Trap::Missing),
    (libc::SYS_io_setup, "io_setup", Trap::Always),
];

/// The calls that can wait for a socket. A second filter traps them, but only in processes that
/// have set a timeout of a socket. The first ones receive, the others send.
pub(crate) const SOCKET_CALLS: &[Call] = &[
    (libc::SYS_read, "read", Trap::Always),
    (libc::SYS_readv, "readv", Trap::Always),
    (libc::SYS_recvfrom, "recvfrom", Trap::Always),
    (libc::SYS_recvmsg, "recvmsg", Trap::Always),
    (libc::SYS_accept, "accept", Trap::Always),
    (libc::SYS_accept4, "accept4", Trap::Always),
    (libc::SYS_recvmmsg, "recvmmsg", Trap::Always),
    (libc::SYS_preadv2, "preadv2", Trap::Always),
    (libc::SYS_splice, "splice", Trap::Always),
    (libc::SYS_write, "write", Trap::Always),
    (libc::SYS_writev, "writev", Trap::Always),
    (libc::SYS_sendto, "sendto", Trap::Always),
    (libc::SYS_sendmsg, "sendmsg", Trap::Always),
    (libc::SYS_sendmmsg, "sendmmsg", Trap::Always),
    (libc::SYS_pwritev2, "pwritev2", Trap::Always),
    (libc::SYS_sendfile, "sendfile", Trap::Always),
    (libc::SYS_connect, "connect", Trap::Always),
];

/// How many of these calls receive.
pub(crate) const RECEIVING: usize = 9;

/// The calls that only sleep, and those whose timeout is a number.
const SLEEPS: [c_long; 2] = [libc::SYS_nanosleep, libc::SYS_clock_nanosleep];
pub(crate) const WITH_NUMBERS: [c_long; 3] =
    [libc::SYS_epoll_wait, libc::SYS_epoll_pwait, libc::SYS_poll];

/// The options `SO_RCVTIMEO` and `SO_SNDTIMEO` by their older numbers, then by their newer ones.
pub(crate) const TIMEOUT_OPTIONS: [u32; 4] = [20, 21, 66, 67];

/// The requests of ioctl(2) that give the kernel work which no thread of the tree shows: making a
/// pseudo-terminal (`TIOCSPTLCK`, which comes before its first use), and a virtual device's worker
/// (`VHOST_SET_OWNER`); or who gets the signals of a socket (`FIOSETOWN`, `SIOCSPGRP`).
const REQUESTS: [u32; 4] = [TIOCSPTLCK, VHOST_SET_OWNER, 0x8901, 0x8902];
pub(crate) const TIOCSPTLCK: u32 = libc::TIOCSPTLCK as u32;
pub(crate) const VHOST_SET_OWNER: u32 = 0xaf01;
/// `F_SETOWN`, `F_SETOWN_EX`, `F_SETLEASE`, and `F_NOTIFY`.
const SIGNALLING: [u32; 4] = [8, 15, 1024, 1026];

const WAITING_FUTEX_OPS: [u32; 5] = [
    libc::FUTEX_WAIT as u32,
    libc::FUTEX_WAIT_BITSET as u32,
    libc::FUTEX_LOCK_PI as u32,
    libc::FUTEX_WAIT_REQUEUE_PI as u32,
    libc::FUTEX_LOCK_PI2 as u32,
];

/// The thread stops for its tracer.
pub(crate) const TRACE: u32 = libc::SECCOMP_RET_TRACE;
/// What the filter returns to make a thread wait for the tracer's answer to its notice.
pub(crate) const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;
/// The call is made, and the tracer learns nothing of it.
pub(crate) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const MISSING: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
/// `AUDIT_ARCH_X86_64`.
const ARCH: u32 = 0xc000_003e;
/// System calls with this number or a greater one are those of the x32 ABI.
const X32: u32 = 0x4000_0000;
const SIGN: u32 = 1 << 31;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const HAS_BITS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

// The layout of `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;

const fn low(arg: u32) -> Op {
    op(LOAD, 16 + 8 * arg)
}

const fn high(arg: u32) -> Op {
    op(LOAD, 20 + 8 * arg)
}

const fn op(code: u16, value: u32) -> Op {
    jump(code, value, 0, 0)
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Op {
    Op { code, jt, jf, k }
}

/// Returns the filter for all traced processes. It returns `sleeps` for calls that only sleep, and
/// `numbers` for those whose timeout is a number: [`TRACE`], [`NOTIFY`] or [`ALLOW`]. `looks`
/// tells whether to trap also those whose number is zero.
pub(crate) fn filter(sleeps: u32, numbers: u32, looks: Looks) -> Vec<Op> {
    program(CALLS, sleeps, numbers, looks)
}

/// Returns the second filter, for processes with a timeout on a socket.
pub(crate) fn socket_filter() -> Vec<Op> {
    program(SOCKET_CALLS, TRACE, TRACE, Looks::Pass)
}

/// Returns the bytes of a filter, as the kernel reads them.
pub(crate) fn bytes(ops: &[Op]) -> Vec<u8> {
    let bytes = |op: &Op| {
        let [a, b] = op.code.to_ne_bytes();
        let [c, d, e, f] = op.k.to_ne_bytes();
        [a, b, op.jt, op.jf, c, d, e, f]
    };
    ops.iter().flat_map(bytes).collect()
}

/// Returns the name of a call that waits, for the report.
pub(crate) fn call_name(number: i64) -> &'static str {
    let call = CALLS.iter().chain(SOCKET_CALLS).find(|(call, ..)| *call == number);
    call.map_or("?", |(_, name, _)| *name)
}

/// Returns the argument of a call that points to its timeout; `None` if the call has none such.
pub(crate) fn timeout_argument(number: c_long, args: [u64; 6]) -> Option<u64> {
    let (.., trap) = CALLS.iter().find(|(call, ..)| *call == number)?;
    match *trap {
        Trap::Pointer(arg) => args.get(arg as usize).copied(),
        Trap::Futex => Some(args[3]),
        _ => None,
    }
}

fn program(calls: &[Call], sleeps: u32, numbers: u32, looks: Looks) -> Vec<Op> {
    let mut ops = vec![
        op(LOAD, ARCH_AT),
        jump(EQUAL, ARCH, 1, 0),
        op(RETURN, ALLOW),
        op(LOAD, NUMBER_AT),
        jump(AT_LEAST, X32, 0, 1),
        op(RETURN, MISSING),
    ];
    for (number, _, trap) in calls {
        let found = match number {
            number if SLEEPS.contains(number) => sleeps,
            number if WITH_NUMBERS.contains(number) => numbers,
            _ => TRACE,
        };
        let block = match *trap {
            Trap::Positive(arg) if looks == Looks::Trap => {
                vec![low(arg), jump(HAS_BITS, SIGN, 1, 0), op(RETURN, found), op(RETURN, ALLOW)]
            }
            trap => block(trap, found),
        };
        ops.push(jump(EQUAL, *number as u32, 0, block.len() as u8));
        ops.extend(block);
    }
    ops.push(op(RETURN, ALLOW));
    ops
}

/// The length of the block of [`Trap::Pointer`].
const POINTER_LENGTH: u8 = 6;

/// Returns the instructions that decide on one call, which end with a return on every path.
fn block(trap: Trap, found: u32) -> Vec<Op> {
    let (trapped, allow) = (op(RETURN, found), op(RETURN, ALLOW));
    match trap {
        Trap::Always => vec![trapped],
        Trap::Missing => vec![op(RETURN, MISSING)],
        Trap::Positive(arg) => {
            vec![low(arg), jump(EQUAL, 0, 2, 0), jump(HAS_BITS, SIGN, 1, 0), trapped, allow]
        }
        Trap::Pointer(arg) => {
            vec![low(arg), jump(EQUAL, 0, 0, 2), high(arg), jump(EQUAL, 0, 1, 0), trapped, allow]
        }
        // Not trapped: 2 and 3, which are CLOCK_PROCESS_CPUTIME_ID and CLOCK_THREAD_CPUTIME_ID, and
        // negative numbers, which the clocks of other processes and of devices have.
        Trap::Clock => vec![
            low(0),
            jump(EQUAL, 2, 3, 0),
            jump(EQUAL, 3, 2, 0),
            jump(HAS_BITS, SIGN, 1, 0),
            trapped,
            allow,
        ],
        Trap::Refused(arg, bits) => {
            let invalid = libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32;
            vec![low(arg), jump(HAS_BITS, bits, 0, 1), op(RETURN, invalid), allow]
        }
        Trap::OneOf(arg, values) => {
            [&[low(arg)][..], &one_of(values, 1), &[trapped, allow]].concat()
        }
        Trap::Futex => {
            let operations = one_of(&WAITING_FUTEX_OPS, POINTER_LENGTH);
            let pointer = block(Trap::Pointer(3), found);
            [&[low(1), op(AND, 0x7f)][..], &operations, &pointer, &[allow]].concat()
        }
        Trap::SocketTimeout => {
            let level = jump(EQUAL, libc::SOL_SOCKET as u32, 0, 6);
            let options = one_of(&TIMEOUT_OPTIONS, 1);
            [&[low(1), level, low(2)][..], &options, &[trapped, allow]].concat()
        }
    }
}

/// Returns the instructions that go on behind themselves if the loaded value is one of these, and
/// otherwise skip this many instructions more.
fn one_of(values: &[u32], otherwise: u8) -> Vec<Op> {
    let behind = (0..values.len() as u8).rev();
    let ops = values.iter().zip(behind);
    ops.map(|(&value, behind)| jump(EQUAL, value, behind, if behind == 0 { otherwise } else { 0 }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter as the kernel does.
    fn verdict(ops: &[Op], arch: u32, number: u32, args: [u64; 6]) -> u32 {
        let load = |at: u32| match at {
            NUMBER_AT => number,
            ARCH_AT => arch,
            at => (args[(at as usize - 16) / 8] >> (8 * (at % 8))) as u32,
        };
        let (mut at, mut value) = (0, 0);
        loop {
            let Op { code, jt, jf, k: operand } = ops[at];
            let holds = match code {
                LOAD => {
                    value = load(operand);
                    true
                }
                AND => {
                    value &= operand;
                    true
                }
                EQUAL => value == operand,
                AT_LEAST => value >= operand,
                HAS_BITS => value & operand != 0,
                _ => return operand,
            };
            at += 1 + usize::from(if holds { jt } else { jf });
        }
    }

    /// The calls that nothing else tells apart: those that a thread makes without a stop.
    #[test]
    fn waits_without_a_time_are_not_trapped() {
        let (minus, bits) = (u64::from(u32::MAX), 1 << 40);
        for (number, index, trapped, passed) in [
            (libc::SYS_poll, 2, &[1][..], &[0, minus][..]),
            (libc::SYS_epoll_wait, 3, &[1], &[0, minus]),
            (libc::SYS_ppoll, 2, &[8, bits], &[0]),
            (libc::SYS_select, 4, &[8, bits], &[0]),
            (libc::SYS_clock_gettime, 0, &[0, 1, 7, 11], &[2, 3, minus - 5]),
            (libc::SYS_getitimer, 0, &[0], &[1, 2]),
            (libc::SYS_ioctl, 1, &REQUESTS.map(u64::from), &[0x5401, 0x5421]),
            (libc::SYS_fcntl, 1, &SIGNALLING.map(u64::from), &[0, 1, 2, 3, 4, 7, 38]),
            (libc::SYS_sendto, 4, &[8], &[0]),
            (libc::SYS_nanosleep, 0, &[0], &[]),
            (libc::SYS_read, 0, &[], &[0]),
        ] {
            let verdict = |looks, value| {
                let mut args = [0; 6];
                args[index] = value;
                verdict(&filter(TRACE, TRACE, looks), ARCH, number as u32, args)
            };
            assert!(trapped.iter().all(|of| verdict(Looks::Pass, *of) == TRACE), "{number}");
            assert!(passed.iter().all(|of| verdict(Looks::Pass, *of) == ALLOW), "{number}");
        }
        let futex = |op: u32, timeout| [0, op.into(), 0, timeout, 0, 0];
        let option = |level, name| [3, level, name, 0, 0, 0];
        let first = |value| [value, 0, 0, 0, 0, 0];
        let untraced = libc::CLONE_UNTRACED as u64;
        let wait = libc::FUTEX_LOCK_PI2 as u32 | libc::FUTEX_PRIVATE_FLAG as u32;
        for (arch, number, args, wanted) in [
            (ARCH, libc::SYS_futex, futex(wait, 1 << 33), TRACE),
            (ARCH, libc::SYS_futex, futex(wait, 0), ALLOW),
            (ARCH, libc::SYS_futex, futex(libc::FUTEX_WAKE_OP as u32, 8), ALLOW),
            (ARCH, libc::SYS_setsockopt, option(1, 67), TRACE),
            (ARCH, libc::SYS_setsockopt, option(1, 22), ALLOW),
            // TCP_CONGESTION is another level's.
            (ARCH, libc::SYS_setsockopt, option(6, 20), ALLOW),
            (ARCH, libc::SYS_clone, first(untraced), libc::SECCOMP_RET_ERRNO | 22),
            (ARCH, libc::SYS_clone, first(17), ALLOW),
            (ARCH, libc::SYS_io_uring_setup, first(0), MISSING),
            (ARCH, c_long::from(X32 | 35), first(0), MISSING),
            (0x4000_0003, 162, first(0), ALLOW),
        ] {
            let found = verdict(&filter(TRACE, TRACE, Looks::Pass), arch, number as u32, args);
            assert_eq!(found, wanted, "{number} {args:?}");
        }
        let [first, frozen] = [(NOTIFY, Looks::Pass), (TRACE, Looks::Trap)]
            .map(|(numbers, looks)| filter(TRACE, numbers, looks));
        let poll = libc::SYS_poll as u32;
        let look = |ops: &[Op]| [1, 0].map(|ms| verdict(ops, ARCH, poll, [0, 0, ms, 0, 0, 0]));
        assert_eq!([look(&first), look(&frozen)], [[NOTIFY, ALLOW], [TRACE, TRACE]]);
        let socket = [libc::SYS_read, libc::SYS_futex];
        let found = socket.map(|of| verdict(&socket_filter(), ARCH, of as u32, [0; 6]));
        assert_eq!(found, [TRACE, ALLOW]);
    }
}
