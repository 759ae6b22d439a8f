//! The memory file of the clock page, and how the tracer publishes a line (time by counter) in it.
#![expect(unsafe_code, reason = "it maps memory that other processes read")]

use super::code::{COPIES, DATA, code};
use crate::line::{Line, Offsets};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

const PAGE: usize = 4096;
pub(crate) const LENGTH: usize = 2 * PAGE;
/// The number of words of a line's copy: counter, slope, nanoseconds, and the clocks' offsets.
const WORDS: usize = 3 + crate::line::CLOCKS;

/// The clock page: its file and this process's mapping.
pub(crate) struct SharedPage {
    file: OwnedFd,
    begin: *mut u8,
}

impl SharedPage {
    /// Makes the file, with the code in it. Memory files exist since Linux 3.17.
    pub(crate) fn new() -> io::Result<SharedPage> {
        // Linux before 6.3 refuses `EXEC`, and later versions want it for a file with code.
        let open = |flags| memfd_create(c"tickless-warp", MemfdFlags::CLOEXEC | flags);
        let file = open(MemfdFlags::EXEC).or_else(|_| open(MemfdFlags::empty()))?;
        ftruncate(&file, LENGTH as u64)?;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: makes a new mapping, at an address that the kernel chooses.
        let begin = unsafe { mmap(std::ptr::null_mut(), LENGTH, access, flags, &file, 0) }?;
        let begin = begin.cast::<u8>();
        let code = code();
        assert!(code.len() <= DATA);
        // SAFETY: the mapping has more bytes than the code, and nothing else uses it yet.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), begin, code.len()) };
        Ok(SharedPage { file, begin })
    }

    /// Returns the number of the file's descriptor in this process.
    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Publishes a line (time by counter). Programs that read the clock at the same time get a time
    /// of the old line or of the new one, and never wait.
    pub(crate) fn publish(&self, line: &Line, offsets: &Offsets) {
        // SAFETY: the mapping is page-aligned and lives as long as `self`; other processes only
        // read it, and all accesses here are atomic.
        let number = unsafe { AtomicU32::from_ptr(self.begin.add(DATA).cast()) };
        for copy in 0..2 {
            // From here on, the number's lowest bit selects the copy that is not written below.
            // x86-64 keeps the order of stores; the compiler has to keep it too.
            number.store(number.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
            compiler_fence(Ordering::SeqCst);
            let words = [line.base_tsc, line.mult, line.base_ns];
            let words = words.into_iter().chain(offsets.0.iter().map(|&of| of.cast_unsigned()));
            for (index, word) in words.enumerate() {
                let at = DATA + COPIES * (copy + 1) + 8 * index;
                // SAFETY: as above; `at` is a multiple of eight within the second page.
                unsafe { AtomicU64::from_ptr(self.begin.add(at).cast()) }
                    .store(word, Ordering::Relaxed);
            }
            compiler_fence(Ordering::SeqCst);
        }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference to it remains.
        let _ = unsafe { munmap(self.begin.cast(), LENGTH) };
    }
}

const _: () = assert!(8 * WORDS <= COPIES && DATA + 3 * COPIES <= LENGTH);
