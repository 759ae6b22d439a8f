//! ptrace(2), as the tracer uses it: without SIGSTOP (`PTRACE_SEIZE`, since Linux 3.4), and such
//! that no thread outlives the tracer (`PTRACE_O_EXITKILL`, since Linux 3.8).
//!
//! Any thread can be killed at any time, stopped or not, so each of these functions can fail
//! because its thread is gone. Callers ignore the failure: an event reports the end of the thread.
#![expect(unsafe_code, reason = "ptrace(2) takes addresses in its arguments")]

use libc::{c_long, c_uint, c_void, pid_t};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{null_mut, without_provenance_mut};

pub(crate) use libc::user_regs_struct as Registers;

/// A system call: its number, the address of the instruction after it, and its arguments. A thread
/// that sleeps outside of all system calls, or where the kernel does not tell, has the number -1.
pub(crate) type Call = (c_long, u64, [u64; 6]);

const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEVFORKDONE
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

fn request(request: c_uint, tid: pid_t, address: usize, data: usize) -> bool {
    let address: *mut c_void = without_provenance_mut(address);
    let data: *mut c_void = without_provenance_mut(data);
    // SAFETY: the callers below pass requests whose arguments are numbers.
    unsafe { libc::ptrace(request, tid, address, data) == 0 }
}

/// Begins to trace a process that runs.
pub(crate) fn seize(pid: pid_t) -> io::Result<()> {
    match request(libc::PTRACE_SEIZE, pid, 0, OPTIONS as usize) {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

/// Resumes a stopped thread, and delivers `signal` to it unless that is zero.
pub(crate) fn resume(tid: pid_t, signal: i32) {
    request(libc::PTRACE_CONT, tid, 0, signal as usize);
}

/// Resumes a stopped thread until the end of the system call at whose begin it is, or until the
/// begin of its next call. Delivers `signal` to it unless that is zero.
pub(crate) fn resume_to_exit(tid: pid_t, signal: i32) {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize);
}

/// Resumes a stopped thread until its next system call, which is then not made: the thread goes on
/// behind it, with the result that its registers have (`PTRACE_SYSEMU`, since Linux 2.6.14).
pub(crate) fn resume_to_next_call(tid: pid_t) {
    request(libc::PTRACE_SYSEMU, tid, 0, 0);
}

/// Has a thread with these registers, which has left a system call, make that call again.
pub(crate) fn repeat_call(registers: &mut Registers) {
    const SYSCALL_LENGTH: u64 = 2;
    registers.rax = registers.orig_rax;
    registers.rip -= SYSCALL_LENGTH;
    // Otherwise the kernel perhaps repeats the call once more.
    registers.orig_rax = u64::MAX;
}

/// Lets a thread take part in a stop of its process (Ctrl-Z), until SIGCONT.
pub(crate) fn listen(tid: pid_t) {
    request(libc::PTRACE_LISTEN, tid, 0, 0);
}

/// Interrupts the system call of a thread. The thread's next stop, for example at the end of the
/// call, also cancels the interruption.
pub(crate) fn interrupt(tid: pid_t) {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0);
}

pub(crate) fn registers(tid: pid_t) -> Option<Registers> {
    let mut registers = MaybeUninit::<Registers>::uninit();
    let to = registers.as_mut_ptr();
    // SAFETY: the request fills in the structure, whose size it knows.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, null_mut::<c_void>(), to) } == 0;
    // SAFETY: the kernel has filled it in.
    done.then(|| unsafe { registers.assume_init() })
}

pub(crate) fn set_registers(tid: pid_t, registers: &Registers) {
    let from: *const Registers = registers;
    // SAFETY: the request reads the structure, whose size it knows.
    unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, null_mut::<c_void>(), from) };
}

/// Returns the number of the new thread, for a stop at clone(2), fork(2) or vfork(2).
pub(crate) fn message(tid: pid_t) -> Option<pid_t> {
    let mut message: libc::c_ulong = 0;
    let to = &raw mut message;
    // SAFETY: the request stores one word.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, null_mut::<c_void>(), to) };
    (done == 0).then_some(message as pid_t)
}

/// A `siginfo_t` as 64-bit words: number and errno, then the code, then what belongs to the signal.
pub(crate) type SignalInfo = [u64; 16];

pub(crate) fn signal_info(tid: pid_t) -> Option<SignalInfo> {
    let mut info: SignalInfo = [0; 16];
    let to = info.as_mut_ptr();
    // SAFETY: a siginfo_t has 128 bytes, as many as the array.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, null_mut::<c_void>(), to) };
    (done == 0).then_some(info)
}

pub(crate) fn set_signal_info(tid: pid_t, info: &SignalInfo) {
    let from = info.as_ptr();
    // SAFETY: as above; the kernel only reads.
    unsafe { libc::ptrace(libc::PTRACE_SETSIGINFO, tid, null_mut::<c_void>(), from) };
}

/// Replaces the mask of blocked signals, and returns the one before (since Linux 3.11).
pub(crate) fn swap_signal_mask(tid: pid_t, mask: u64) -> Option<u64> {
    let mut before = 0_u64;
    let to = &raw mut before;
    // SAFETY: the request stores a mask of the size that is passed.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETSIGMASK, tid, 8_usize, to) };
    if done != 0 {
        return None;
    }
    let from = &raw const mask;
    // SAFETY: the request reads a mask of the size that is passed.
    unsafe { libc::ptrace(libc::PTRACE_SETSIGMASK, tid, 8_usize, from) };
    Some(before)
}

/// Writes bytes into memory that the thread itself is not allowed to write, as a debugger does. The
/// process gets its own copy of the page.
pub(crate) fn poke(tid: pid_t, address: u64, bytes: &[u8]) -> bool {
    bytes.chunks(8).enumerate().all(|(index, chunk)| {
        let at = address + 8 * index as u64;
        let Some([before]) = super::memory::words::<1>(tid, at) else { return false };
        let mut word = before.to_ne_bytes();
        word[..chunk.len()].copy_from_slice(chunk);
        request(libc::PTRACE_POKETEXT, tid, at as usize, u64::from_ne_bytes(word) as usize)
    })
}
