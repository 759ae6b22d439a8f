//! What ends the sleep of a thread in a system call whose time the tracer does not know.
//!
//! The state of a sleeping thread does not show what it waits for. Most calls wait for another
//! thread, or for a signal. In all others, the kernel itself is at work, or something outside of
//! the tree: a file system in another process, a device, a timer of the kernel. So this is a list
//! of the calls that wait for the tree, and every other sleep holds the clock. `docs/dev/warp.md`
//! has the table of what can be under way. Pure.

use crate::filter::timeout_argument;
use crate::sys::ptrace::Call;

/// What ends a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EndedBy {
    /// Another thread of the tree or a signal, or a deadline that the tracer finds.
    Tree,
    /// As `Tree` if the call waits for one of these descriptors, the first to read and the second
    /// to write, and that is a pipe, socket or the like. Files and devices are the kernel's own.
    Descriptors(u64, u64),
    /// As `Tree` if a process of the tree holds a lock of the file with this descriptor.
    Lock(u64),
    /// As `Tree` if the path at the address, from the directory with this descriptor, names a pipe.
    Path(u64, u64),
    /// The kernel, or something outside of the tree.
    Kernel,
}

/// Returns what ends the sleep of a thread in a system call.
pub(crate) fn ended_by(&(number, _, args): &Call) -> EndedBy {
    use EndedBy::{Descriptors, Kernel, Lock, Path, Tree};
    let [first, second, third, ..] = args;
    match number {
        // An interrupted poll(2) is repeated as restart_syscall(2). A clock of CPU time, which only
        // the threads of the tree move, is the only one whose sleeps are not trapped.
        libc::SYS_poll
        | libc::SYS_restart_syscall
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_recvmmsg
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_pause
        | libc::SYS_rt_sigsuspend
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_semop
        | libc::SYS_msgrcv
        | libc::SYS_msgsnd => Tree,
        libc::SYS_flock | libc::SYS_fcntl => Lock(first),
        libc::SYS_clock_nanosleep if matches!(first as i32, 2 | 3 | ..=-1) => Tree,
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_preadv2
        | libc::SYS_pwritev2
        | libc::SYS_vmsplice => Descriptors(first, first),
        libc::SYS_sendfile => Descriptors(second, first),
        libc::SYS_tee => Descriptors(first, second),
        libc::SYS_splice => Descriptors(first, third),
        libc::SYS_open | libc::SYS_creat => Path(libc::AT_FDCWD as u64, first),
        libc::SYS_openat | libc::SYS_openat2 => Path(first, second),
        // The tracer knows the deadline of each wait that has one, so this one has none.
        number => match timeout_argument(number, args) {
            Some(0) => Tree,
            _ => Kernel,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(number: libc::c_long, args: [u64; 6]) -> EndedBy {
        ended_by(&(number, 0x1000, args))
    }

    #[test]
    fn a_sleep_in_an_unknown_call_is_the_kernels() {
        use EndedBy::{Descriptors, Kernel, Path, Tree};
        let with = |index: usize, value| {
            let mut args = [0; 6];
            args[index] = value;
            args
        };
        for (number, index) in [(libc::SYS_ppoll, 2), (libc::SYS_select, 4), (libc::SYS_futex, 3)] {
            // A timeout that the tracer has not taken is one of which it knows no deadline.
            assert_eq!([0, 8].map(|at| by(number, with(index, at))), [Tree, Kernel], "{number}");
        }
        assert_eq!(by(libc::SYS_futex, [1, 129, 0, 8, 0, 0]), Kernel, "a wakeup never sleeps");
        for number in [libc::SYS_nanosleep, libc::SYS_ioctl, libc::SYS_stat, libc::SYS_fsync, -1] {
            assert_eq!(by(number, [0; 6]), Kernel, "{number}");
        }
        let clocks = [0, 1, 2, 3, u64::from(-6_i32 as u32)];
        let sleeps = clocks.map(|clock| by(libc::SYS_clock_nanosleep, with(0, clock)));
        assert_eq!(sleeps, [Kernel, Kernel, Tree, Tree, Tree]);
        assert_eq!(by(libc::SYS_read, [3, 0, 0, 0, 0, 0]), Descriptors(3, 3));
        assert_eq!(by(libc::SYS_splice, [3, 0, 4, 0, 0, 0]), Descriptors(3, 4));
        assert_eq!(by(libc::SYS_openat, [3, 64, 0, 0, 0, 0]), Path(3, 64));
    }
}
