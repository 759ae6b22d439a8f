//! Timeouts of sockets: `SO_RCVTIMEO` and `SO_SNDTIMEO`.
//!
//! The tracer stores these timeouts, and the kernel's sockets have none. A second filter traps the
//! calls that can wait for a socket, but only in processes that set such a timeout.

use super::state::{Engine, FAULT};
use crate::filter::{RECEIVING, SOCKET_CALLS, TIMEOUT_OPTIONS, socket_filter};
use crate::sys::ptrace::Registers;
use crate::sys::{descriptors, memory};
use crate::thread::call_of;
use crate::timeout::{Endless, NS, Remaining, TimedCall, When};
use libc::pid_t;

const WRONG_TIME: i64 = -(libc::EDOM as i64);

impl Engine<'_> {
    /// Answers a call that sets or reads the timeout of a socket.
    pub(crate) fn answer_socket_option(&mut self, tid: pid_t, registers: &Registers) -> bool {
        let (number, _, [fd, _, option, value, length, _]) = call_of(registers);
        let process = self.tree.process_of(tid);
        let Some(socket) = descriptors::socket(process, fd) else { return false };
        // The options in the list that are for sending have odd indices.
        let place = TIMEOUT_OPTIONS.iter().position(|&of| u64::from(of) == option);
        let direction = place.map_or(0, |place| place % 2);
        let result = match number {
            libc::SYS_setsockopt => {
                let Some([seconds, micros]) = memory::words(tid, value) else { return false };
                if length < 16 || self.install_socket_filter(tid, process).is_none() {
                    return false;
                }
                if micros < 1_000_000 {
                    let timeouts = self.socket_timeouts.entry(socket).or_insert([0; 2]);
                    // The kernel takes negative seconds for a wait that ends at once.
                    let is_negative = seconds.cast_signed() < 0;
                    let ns = seconds.saturating_mul(NS).saturating_add(micros * 1_000);
                    timeouts[direction] = if is_negative { 1 } else { ns };
                    0
                } else {
                    WRONG_TIME
                }
            }
            libc::SYS_getsockopt => {
                let Some(timeouts) = self.socket_timeouts.get(&socket) else { return false };
                let ns = timeouts[direction];
                let words = [ns / NS, ns % NS / 1_000];
                let is_written = memory::write_words(tid, value, &words)
                    && memory::write(tid, length, &16_u32.to_ne_bytes());
                if is_written { 0 } else { FAULT }
            }
            _ => return false,
        };
        self.answer(tid, *registers, result);
        true
    }

    /// Returns the wait of a call on a socket; `None` if the socket has no timeout for this call.
    pub(crate) fn socket_wait(&self, tid: pid_t, registers: &Registers) -> Option<TimedCall> {
        let (number, _, [fd, _, to, ..]) = call_of(registers);
        let place = SOCKET_CALLS.iter().position(|(call, ..)| *call == number)?;
        let process = self.tree.process_of(tid);
        let of = |fd| self.socket_timeouts.get(&descriptors::socket(process, fd)?).copied();
        let after = match (of(fd), number) {
            (None, libc::SYS_splice) => of(to)?[1],
            // What it returns inherits both timeouts.
            (Some([0, _]), libc::SYS_accept | libc::SYS_accept4) => u64::MAX,
            (timeouts, _) => timeouts?[usize::from(place >= RECEIVING)],
        };
        let error = if number == libc::SYS_connect { libc::EINPROGRESS } else { libc::EAGAIN };
        (after > 0).then_some(TimedCall {
            when: When::After(after),
            timed_out: -i64::from(error),
            endless: Endless::AsItIs,
            remaining: Remaining::No,
        })
    }

    /// A connection that accept(2) has returned has the timeouts of its listener, unless it is one
    /// of Unix sockets.
    pub(crate) fn inherit_timeouts(&mut self, tid: pid_t, call: &Registers, result: i64) {
        let is_accept = matches!(call.orig_rax as i64, libc::SYS_accept | libc::SYS_accept4);
        let process = self.tree.process_of(tid);
        let socket = |fd| descriptors::socket(process, fd).filter(|_| is_accept && result >= 0);
        if let (Some(listener), Some(new)) = (socket(call.rdi), socket(result.cast_unsigned()))
            && let Some(timeouts) = self.socket_timeouts.get(&listener)
            && descriptors::is_of_internet(process, call.rdi)
        {
            self.socket_timeouts.insert(new, *timeouts);
        }
    }

    /// Installs the second filter (it traps calls on sockets) in a thread's process, unless it is
    /// installed. The thread is stopped before a call. `None` if that fails.
    fn install_socket_filter(&mut self, tid: pid_t, process: pid_t) -> Option<()> {
        if self.tree.processes.get(&process)?.has_socket_filter {
            return Some(());
        }
        const RED_ZONE: u64 = 128;
        let bytes = crate::filter::bytes(&socket_filter());
        let rsp = crate::sys::ptrace::registers(tid)?.rsp;
        let at = (rsp - RED_ZONE - bytes.len() as u64 - 16) & !15;
        let header = [(bytes.len() / 8) as u64, at + 16];
        if !memory::write_words(tid, at, &header) || !memory::write(tid, at + 16, &bytes) {
            return None;
        }
        let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
        let all_threads = libc::SECCOMP_FILTER_FLAG_TSYNC;
        self.call(tid, libc::SYS_seccomp, [mode, all_threads, at, 0, 0, 0])?;
        self.tree.processes.get_mut(&process)?.has_socket_filter = true;
        Some(())
    }
}
