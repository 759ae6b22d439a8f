//! The code that programs run in place of the vDSO's functions.
//!
//! The first page of a memory file has the code, and the second the data that it reads. Each
//! program maps both, at any address: the code finds the data relative to itself.
//!
//! The data are two copies of the clock's line (time by counter), and a number whose lowest bit
//! selects the valid copy. A writer increases the number before it changes each copy. So a reader
//! never waits, even while the writer has lost its CPU: the reader reads the copy that is not being
//! changed, and reads again if the number has changed since.
#![expect(unsafe_code, reason = "the code of the clock page is assembly")]

use core::arch::global_asm;

/// The distance in bytes from the begin of the code to that of the data.
pub(super) const DATA: usize = 4096;
/// The distance in bytes from the begin of the data to the first copy, and from there to the
/// second.
pub(super) const COPIES: usize = 128;

global_asm!(
    ".pushsection .text.tickless_warp, \"ax\", @progbits",
    // Rust's code may be compiled in several parts, each of which has to find these symbols.
    ".irp part, code, clock_gettime, gettimeofday, time, code_end",
    ".globl tickless_warp_\\part",
    ".hidden tickless_warp_\\part",
    ".endr",
    ".balign 64",
    "tickless_warp_code:",
    // Reads the clock with the number in rdi: s to rdx, ns to rax. Changes rcx, r8 - r11.
    "2:  lea r8, [rip + tickless_warp_code + 4096]",
    "3:  mov r9d, [r8]",
    "    mov ecx, r9d",
    "    and ecx, 1",
    "    shl ecx, 7",
    "    lea r10, [r8 + rcx + 128]",
    // With the slope 0 (a frozen clock), skip the counter, whose reading is trapped then.
    "    xor eax, eax",
    "    cmp [r10 + 8], rax",
    "    je 8f",
    "    lfence",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    xor ecx, ecx",
    "    sub rax, [r10]",
    "    cmovb rax, rcx",
    "    mul qword ptr [r10 + 8]",
    "    shrd rax, rdx, 32",
    "8:  add rax, [r10 + 16]",
    "    add rax, [r10 + rdi * 8 + 24]",
    "    cmp r9d, [r8]",
    "    jne 3b",
    // Divides by 10^9, by a multiplication: seconds in rdx, nanoseconds in rax.
    "    mov r10, rax",
    "    shr rax, 9",
    "    movabs rcx, 0x44b82fa09b5a53",
    "    mul rcx",
    "    shr rdx, 11",
    "    imul rcx, rdx, 1000000000",
    "    mov rax, r10",
    "    sub rax, rcx",
    "    ret",
    ".balign 32",
    "tickless_warp_clock_gettime:",
    "    cmp edi, 11",
    "    ja 4f",
    // A bit mask of the clocks that flow with virtual time, except those of alarms.
    "    mov eax, 0x8f3",
    "    bt eax, edi",
    "    jnc 4f",
    "    mov edi, edi",
    "    call 2b",
    "    mov [rsi], rdx",
    "    mov [rsi + 8], rax",
    "    xor eax, eax",
    "    ret",
    "4:  mov eax, 228",
    "    syscall",
    "    ret",
    ".balign 32",
    "tickless_warp_gettimeofday:",
    "    test rsi, rsi",
    "    jnz 5f",
    "    mov rsi, rdi",
    "    test rsi, rsi",
    "    jz 6f",
    "    xor edi, edi",
    "    call 2b",
    "    mov [rsi], rdx",
    // Divides by 1,000, which is exact for numbers below 2^32.
    "    mov ecx, 0x10624dd3",
    "    imul rax, rcx",
    "    shr rax, 38",
    "    mov [rsi + 8], rax",
    "6:  xor eax, eax",
    "    ret",
    "5:  mov eax, 96",
    "    syscall",
    "    ret",
    ".balign 32",
    "tickless_warp_time:",
    "    mov rsi, rdi",
    "    xor edi, edi",
    "    call 2b",
    "    mov rax, rdx",
    "    test rsi, rsi",
    "    jz 7f",
    "    mov [rsi], rax",
    "7:  ret",
    "tickless_warp_code_end:",
    ".popsection",
);

unsafe extern "C" {
    static tickless_warp_code: u8;
    static tickless_warp_clock_gettime: u8;
    static tickless_warp_gettimeofday: u8;
    static tickless_warp_time: u8;
    static tickless_warp_code_end: u8;
}

/// Returns the bytes of the code.
pub(super) fn code() -> &'static [u8] {
    let begin = &raw const tickless_warp_code;
    let end = &raw const tickless_warp_code_end;
    // SAFETY: the two symbols are the begin and the end of one section's code, which is readable
    // and never changes.
    unsafe { core::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) }
}

/// The functions of the vDSO that have a counterpart in the code, each with its name in the vDSO,
/// its system call, and its place in the code.
pub(super) fn functions() -> [(&'static str, u32, usize); 3] {
    let begin = (&raw const tickless_warp_code).addr();
    [
        ("__vdso_clock_gettime", 228, (&raw const tickless_warp_clock_gettime).addr() - begin),
        ("__vdso_gettimeofday", 96, (&raw const tickless_warp_gettimeofday).addr() - begin),
        ("__vdso_time", 201, (&raw const tickless_warp_time).addr() - begin),
    ]
}
