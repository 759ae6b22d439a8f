//! What a new program gets before its first instruction: the clock page in its memory, and in its
//! vDSO jumps to that page.

use super::state::Engine;
use crate::options::Note;
use crate::page::{shared, vdso};
use crate::sys::events::{self, Event};
use crate::sys::ptrace::Registers;
use crate::sys::{memory, ptrace};
use libc::{c_long, pid_t};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// The selector of the code segment in which a 32-bit program runs.
const CS_32_BITS: u64 = 0x23;

impl Engine<'_> {
    /// Prepares a program that is stopped at the end of execve(2). Returns whether it can run.
    pub(crate) fn prepare(&mut self, tid: pid_t) -> bool {
        let Some(registers) = ptrace::registers(tid) else { return true };
        if registers.cs == CS_32_BITS {
            self.note(Note::ThirtyTwoBits(self.tree.name_of(tid)));
            events::kill(tid, libc::SIGKILL);
            return false;
        }
        if is_unprivileged_set_uid(tid) {
            self.note(Note::SetUid(self.tree.name_of(tid)));
        }
        let Some(vdso) = vdso::address(tid) else { return true };
        let Some(functions) = &self.functions else { return true };
        let (offset, bytes) = functions.call();
        if !ptrace::poke(tid, vdso + offset, &bytes) {
            return true;
        }
        if self.options.is_counter_virtual() {
            let [option, value] = [libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV].map(|of| of as u64);
            self.call(tid, libc::SYS_prctl, [option, value, 0, 0, 0, 0]);
        }
        // The page has the clocks of the tracer's time namespace.
        let is_in_namespace = self.tree.is_in_time_namespace(tid);
        let page = if is_in_namespace { None } else { self.map_page(tid) };
        self.patch(tid, page);
        true
    }

    /// Makes the vDSO's functions jump to the clock page or, without one, make system calls.
    pub(crate) fn patch(&self, tid: pid_t, page: Option<u64>) {
        let (Some(vdso), Some(functions)) = (vdso::address(tid), &self.functions) else { return };
        for (offset, bytes) in functions.patches(page) {
            ptrace::poke(tid, vdso + offset, &bytes);
        }
    }

    /// Maps the clock page into a program. `None` if the program has to make system calls instead:
    /// its user is not allowed to open the tracer's files, or its memory is limited.
    fn map_page(&mut self, tid: pid_t) -> Option<u64> {
        let fd = self.clock.page.as_ref()?.fd();
        let path = format!("/proc/{}/fd/{fd}\0", std::process::id());
        // The path goes below the stack, where the kernel has put nothing yet.
        let at = (ptrace::registers(tid)?.rsp - 512) & !15;
        if !memory::write(tid, at, path.as_bytes()) {
            return None;
        }
        let directory = libc::AT_FDCWD as u64;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
        let fd = self.call(tid, libc::SYS_openat, [directory, at, flags, 0, 0, 0])?;
        let access = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        let (length, shared) = (shared::LENGTH as u64, libc::MAP_SHARED as u64);
        let page = self.call(tid, libc::SYS_mmap, [0, length, access, shared, fd, 0]);
        self.call(tid, libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
        page
    }

    /// Makes a system call in a stopped thread, by the instructions for it in the thread's vDSO.
    /// Restores the thread's registers. Returns the result if the call succeeds.
    pub(crate) fn call(&mut self, tid: pid_t, number: c_long, args: [u64; 6]) -> Option<u64> {
        const ALL_BUT_SIGTRAP: u64 = !(1 << (libc::SIGTRAP - 1));
        let (offset, _) = self.functions.as_ref()?.call();
        let before = ptrace::registers(tid)?;
        let mask = ptrace::swap_signal_mask(tid, ALL_BUT_SIGTRAP)?;
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        let mut registers = Registers { rdi, rsi, rdx, r10, r8, r9, ..before };
        registers.rip = vdso::address(tid)? + offset;
        // If the thread is stopped before a system call of its own, this skips that call.
        registers.orig_rax = u64::MAX;
        registers.r15 = number.cast_unsigned();
        ptrace::set_registers(tid, &registers);
        ptrace::resume(tid, 0);
        loop {
            match events::next_of(tid)? {
                Event::Signal(libc::SIGTRAP) => break,
                ended @ Event::Ended(_) => {
                    self.handle(tid, ended);
                    return None;
                }
                // A stop of the whole process: resume the thread; the stop is reported again later.
                _ => ptrace::resume(tid, 0),
            }
        }
        let result = ptrace::registers(tid)?.rax;
        ptrace::set_registers(tid, &before);
        ptrace::swap_signal_mask(tid, mask);
        (result.cast_signed() >= 0).then_some(result)
    }
}

/// Returns whether a program is set-uid, but runs as the user that started it.
fn is_unprivileged_set_uid(pid: pid_t) -> bool {
    const SET_UID: u32 = 0o4000;
    let own = fs::metadata(format!("/proc/{pid}")).map(|process| process.uid());
    let file = fs::metadata(format!("/proc/{pid}/exe"));
    file.is_ok_and(|file| {
        file.permissions().mode() & SET_UID != 0 && own.is_ok_and(|own| own != file.uid())
    })
}
