//! System calls that read or set a clock, answered from the virtual clock.

use super::state::{Engine, FAULT, INVALID};
use crate::line::Offsets;
use crate::sys::events::has_clock;
use crate::sys::memory;
use crate::sys::ptrace::Registers;
use crate::thread::{Change, call_of};
use crate::timeout::{ALARM_CLOCKS, NS, timespec};
use libc::{c_long, pid_t};

impl Engine<'_> {
    /// Answers a call that reads or sets a clock. Returns whether it is such a call.
    pub(crate) fn answer_clock(&mut self, tid: pid_t, registers: &Registers) -> bool {
        let (number, _, [first, second, ..]) = call_of(registers);
        let write =
            |at: u64, words: &[u64]| if memory::write_words(tid, at, words) { 0 } else { FAULT };
        let read = |clock| self.clock.offsets.of_monotonic(clock, self.clock.now());
        let result = match number {
            libc::SYS_clock_gettime => {
                let clock = first & u64::from(u32::MAX);
                let is_alarm = ALARM_CLOCKS.contains(&(clock as i32));
                if !Offsets::is_virtual(clock) || (is_alarm && !has_clock(clock as i32)) {
                    self.on(tid, Change::GoesOn);
                    return true;
                }
                let ahead = self.tree.namespace_ahead(tid, clock);
                let ns = read(clock).saturating_add_signed(ahead);
                write(second, &[ns / NS, ns % NS])
            }
            libc::SYS_gettimeofday => {
                let ns = read(0);
                let time = if first == 0 { 0 } else { write(first, &[ns / NS, ns % NS / 1_000]) };
                // Write a time zone of zeros, because the kernel has none.
                let zone = if second == 0 { 0 } else { write(second, &[0]) };
                time.min(zone)
            }
            libc::SYS_time => {
                let seconds = read(0) / NS;
                match first == 0 || write(first, &[seconds]) == 0 {
                    true => seconds.cast_signed(),
                    false => FAULT,
                }
            }
            libc::SYS_clock_settime | libc::SYS_settimeofday => {
                self.set_clock(tid, number, first, second)
            }
            _ => return false,
        };
        self.answer(tid, *registers, result);
        true
    }

    /// Sets the traced processes' realtime clock, not the machine's, so it needs no privileges.
    fn set_clock(&mut self, tid: pid_t, number: c_long, first: u64, second: u64) -> i64 {
        let is_timeval = number == libc::SYS_settimeofday;
        let at = if is_timeval { first } else { second };
        if is_timeval && at == 0 {
            return 0;
        }
        if !is_timeval && first != 0 {
            return INVALID;
        }
        let Some([seconds, part]) = memory::words(tid, at) else { return FAULT };
        let part = if is_timeval { part.saturating_mul(1_000) } else { part };
        let Some(ns) = timespec([seconds.cast_signed(), part.cast_signed()]) else {
            return INVALID;
        };
        self.clock.set_realtime(ns);
        self.realtime_has_been_set();
        0
    }
}
