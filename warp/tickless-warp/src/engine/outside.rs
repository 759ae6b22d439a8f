//! Input from outside of the traced processes: a terminal or pipe that the program got as its
//! standard input, connections to other machines, and pseudo-terminals. Meanwhile, time is real.

use super::state::Engine;
use crate::options::{Note, Outside};
use crate::sys::ptrace::Registers;
use crate::sys::{descriptors, memory};
use crate::thread::{State, arguments};
use libc::pid_t;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Device and number of a file.
pub(crate) type FileId = (u64, u64);

/// The maximum number of descriptors of one poll(2) call that the tracer looks at.
const POLLED_MAX: usize = 64;

/// Returns the standard input of this process, if its data comes from outside of the program.
pub(crate) fn standard_input() -> Option<FileId> {
    let file = fs::metadata("/proc/self/fd/0").ok()?;
    let kind = file.file_type();
    let is_null = kind.is_char_device() && libc::major(file.rdev()) == 1;
    let is_outside = (kind.is_char_device() && !is_null) || kind.is_fifo() || kind.is_socket();
    is_outside.then(|| (file.dev(), file.ino()))
}

impl Engine<'_> {
    /// For a thread that is stopped before connect(2): records the connection if it leads to
    /// another machine. Otherwise makes the socket send its data at once (TCP_NODELAY).
    pub(crate) fn connects(&mut self, tid: pid_t, registers: &Registers) {
        let [fd, address, ..] = arguments(registers);
        let mut bytes = [0; 28];
        if memory::read(tid, address, &mut bytes) || memory::read(tid, address, &mut bytes[..16]) {
            let process = self.tree.process_of(tid);
            if !is_beyond(&bytes) {
                descriptors::send_at_once(process, fd);
            } else if let Some(socket) = descriptors::socket(process, fd) {
                self.outside_sockets.push((process, fd, socket));
            }
        }
    }

    /// Returns whether the clock must not jump, because a socket is connected to another machine or
    /// a thread waits for standard input that comes from outside.
    pub(crate) fn is_held_by_outside(&mut self) -> bool {
        if self.options.outside == Outside::Ignore {
            return false;
        }
        self.outside_sockets
            .retain(|&(process, fd, socket)| descriptors::socket(process, fd) == Some(socket));
        let by_network = self.outside_sockets.first().map(|(process, ..)| *process);
        let holder = by_network.map(|process| (process, "a connection to another machine"));
        let holder = holder.or_else(|| {
            let mut processes = self.tree.processes.keys().filter(|_| self.has_terminals);
            let process = processes.find(|process| descriptors::has_terminal(**process))?;
            // A thread of the kernel passes on what is written, and the tracer does not see it.
            Some((*process, "data of a pseudo-terminal"))
        });
        let holder = holder.or_else(|| {
            let input = self.input?;
            let reads = |tid: &pid_t| waits_for(self.tree.process_of(*tid), *tid, input);
            let free = self
                .tree
                .threads
                .values()
                .filter(|thread| matches!(thread.state, State::Free(_) | State::Waiting(_)));
            let tid = free.map(|thread| thread.tid).find(reads)?;
            Some((tid, "its standard input"))
        });
        let Some((tid, what)) = holder else { return false };
        if !self.has_noted_outside {
            self.has_noted_outside = true;
            self.note(Note::Outside(self.tree.name_of(tid), what));
        }
        true
    }
}

/// Returns whether an address of a socket is that of another machine.
fn is_beyond(address: &[u8; 28]) -> bool {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    const ONE: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let is_local = |first: u8| first == 127 || first == 0;
    match i32::from(u16::from_ne_bytes([address[0], address[1]])) {
        libc::AF_INET => !is_local(address[4]),
        libc::AF_INET6 if address[8..20] == MAPPED => !is_local(address[20]),
        libc::AF_INET6 => address[8..24] != ONE && address[8..24] != [0; 16],
        _ => false,
    }
}

/// Returns whether a thread that is asleep waits for a file: in read(2), poll(2), select(2),
/// epoll_wait(2) and their like.
fn waits_for(process: pid_t, tid: pid_t, file: FileId) -> bool {
    let call = fs::read_to_string(format!("/proc/{process}/task/{tid}/syscall"));
    let call = call.unwrap_or_default();
    let mut words = call.split_whitespace();
    let Some(number) = words.next().and_then(|number| number.parse().ok()) else { return false };
    let args: Vec<u64> = words
        .map_while(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
        .collect();
    let [first, second, ..] = args[..] else { return false };
    let is_file = |fd: u64| {
        let found = fs::metadata(format!("/proc/{process}/fd/{}", fd as u32));
        found.is_ok_and(|found| (found.dev(), found.ino()) == file)
    };
    match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => is_file(first),
        libc::SYS_poll | libc::SYS_ppoll => {
            let count = usize::try_from(second).unwrap_or(0).min(POLLED_MAX);
            let mut bytes = vec![0; 8 * count];
            memory::read(tid, first, &mut bytes)
                && bytes.chunks_exact(8).any(|poll| {
                    is_file(u64::from(u32::from_ne_bytes([poll[0], poll[1], poll[2], poll[3]])))
                })
        }
        libc::SYS_select | libc::SYS_pselect6 => {
            let [set] = memory::words::<1>(tid, second).unwrap_or([0]);
            (0..first.min(64)).any(|fd| set >> fd & 1 != 0 && is_file(fd))
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{first}"));
            info.unwrap_or_default().lines().any(|line| {
                let target = line.strip_prefix("tfd:").and_then(|of| of.split_whitespace().next());
                target.and_then(|fd| fd.parse().ok()).is_some_and(is_file)
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_beyond_loopback() {
        let v4 = |address: [u8; 4]| {
            let mut bytes = [0; 28];
            bytes[0] = libc::AF_INET as u8;
            bytes[4..8].copy_from_slice(&address);
            is_beyond(&bytes)
        };
        let v6 = |address: &str| {
            let address: std::net::Ipv6Addr = address.parse().unwrap();
            let mut bytes = [0; 28];
            bytes[0] = libc::AF_INET6 as u8;
            bytes[8..24].copy_from_slice(&address.octets());
            is_beyond(&bytes)
        };
        assert!(v4([10, 0, 0, 1]) && !v4([127, 0, 0, 1]) && !v4([0; 4]));
        assert!(v6("2001:db8::1") && v6("::ffff:10.0.0.1"));
        assert!(!v6("::1") && !v6("::") && !v6("::ffff:127.0.0.53"));
        assert!(!is_beyond(&[1; 28]), "a socket in the file system");
    }
}
