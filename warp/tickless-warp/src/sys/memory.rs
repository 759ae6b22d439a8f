//! Memory of stopped threads.
#![expect(unsafe_code, reason = "it reads and writes memory of other processes")]

use libc::{c_void, pid_t};

/// Reads `bytes.len()` bytes of a thread's memory. Returns whether all could be read.
/// `process_vm_readv` exists since Linux 3.2.
pub(crate) fn read(tid: pid_t, address: u64, bytes: &mut [u8]) -> bool {
    let length = bytes.len();
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: length };
    // SAFETY: the local range is that of `bytes`; the kernel checks the remote one.
    let read = unsafe { libc::process_vm_readv(tid, &local, 1, &remote, 1, 0) };
    usize::try_from(read) == Ok(length)
}

/// Writes bytes to a thread's memory where the thread itself can write. Returns whether it could.
pub(crate) fn write(tid: pid_t, address: u64, bytes: &[u8]) -> bool {
    let length = bytes.len();
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: length };
    // SAFETY: the kernel only reads the local range; it checks the remote one.
    let written = unsafe { libc::process_vm_writev(tid, &local, 1, &remote, 1, 0) };
    usize::try_from(written) == Ok(length)
}

/// Reads `N` words.
pub(crate) fn words<const N: usize>(tid: pid_t, address: u64) -> Option<[u64; N]> {
    let mut words = [[0; 8]; N];
    read(tid, address, words.as_flattened_mut()).then(|| words.map(u64::from_ne_bytes))
}

pub(crate) fn write_words(tid: pid_t, address: u64, words: &[u64]) -> bool {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    write(tid, address, &bytes)
}

/// Fills places of a thread's memory with zeros, each an address and a number of words, up to one
/// that the thread cannot write.
pub(crate) fn clear(tid: pid_t, places: &[(u64, usize)]) {
    let range = |iov_base: *mut c_void, words| libc::iovec { iov_base, iov_len: 8 * words };
    let remote = places.iter().map(|&(at, words)| range(at as *mut c_void, words));
    let remote: Vec<libc::iovec> = remote.collect();
    let zeros = vec![0_u64; places.iter().map(|(_, words)| words).sum()];
    let local = range(zeros.as_ptr().cast_mut().cast(), zeros.len());
    // SAFETY: as in `write`.
    unsafe { libc::process_vm_writev(tid, &local, 1, remote.as_ptr(), remote.len() as u64, 0) };
}
