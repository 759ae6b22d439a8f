//! How often each thread has been woken, counted by an eBPF program (BTF tracepoints, since Linux
//! 5.5). Needs root, and a kernel with CONFIG_DEBUG_INFO_BTF.
#![expect(unsafe_code, reason = "it maps memory that the kernel writes")]

use aya::maps::Map;
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use libc::pid_t;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// The compiled `bpf/wakes.bpf.c`; `ci/bpf.sh` compiles the source again and compares.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/wakes.bpf.o");
const TRACEPOINT: &str = "sched_waking";
/// Threads whose numbers are equal modulo this share a count.
const SLOTS: usize = 65_536;

/// Counts the wakeups of all threads of the machine, until it is dropped.
pub(crate) struct Wakes {
    counts: NonNull<[AtomicU32; SLOTS]>,
    _program: Ebpf,
}

// SAFETY: the mapping belongs to the process, and its words are atomic.
unsafe impl Send for Wakes {}

impl Wakes {
    /// Loads the program. Takes some 50 ms. `None` where the kernel refuses it.
    pub(crate) fn start() -> Option<Wakes> {
        // The kernel counts by the numbers of threads in the outermost namespace, whose inode is
        // fixed.
        const OUTERMOST: &str = "pid:[4026531836]";
        if fs::read_link("/proc/self/ns/pid").ok()?.to_str() != Some(OUTERMOST) {
            return None;
        }
        let types = Btf::from_sys_fs().ok()?;
        let mut program = EbpfLoader::new().btf(Some(&types)).load(OBJECT).ok()?;
        let Map::Array(map) = program.take_map("wakes")? else { return None };
        let point: &mut BtfTracePoint = program.program_mut(TRACEPOINT)?.try_into().ok()?;
        point.load(TRACEPOINT, &types).ok()?;
        point.attach().ok()?;
        let (length, fd) = (size_of::<[AtomicU32; SLOTS]>(), map.fd().as_fd().as_raw_fd());
        // SAFETY: makes a new mapping, at an address that the kernel chooses; it keeps the map.
        let at =
            unsafe { libc::mmap(null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        let counts = NonNull::new(at).filter(|_| at != libc::MAP_FAILED)?.cast();
        Some(Wakes { counts, _program: program })
    }

    /// Returns how often a thread has been woken, modulo 2^32. The count rises before the thread
    /// can run.
    pub(crate) fn of(&self, tid: pid_t) -> u64 {
        // SAFETY: the mapping has this length, and lives as long as `self`.
        let counts = unsafe { self.counts.as_ref() };
        u64::from(counts[tid.cast_unsigned() as usize % SLOTS].load(Ordering::Acquire))
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference to it remains.
        unsafe { libc::munmap(self.counts.as_ptr().cast(), size_of::<[AtomicU32; SLOTS]>()) };
    }
}
