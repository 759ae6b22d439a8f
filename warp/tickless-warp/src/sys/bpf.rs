//! Loads eBPF programs that run at raw tracepoints (since Linux 4.17) and share the only entry of a
//! map with this process (since Linux 5.5).
//!
//! No eBPF library is used: it would first read the kernel's description of its types (BTF), which
//! takes longer than most programs that are run in virtual time.
#![expect(unsafe_code, reason = "bpf(2), and memory that the kernel writes")]

use libc::c_int;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

// Commands and constants of bpf(2), from `include/uapi/linux/bpf.h`.
const MAP_CREATE: c_int = 0;
const PROG_LOAD: c_int = 5;
const RAW_TRACEPOINT_OPEN: c_int = 17;
const MAP_TYPE_ARRAY: u32 = 2;
const MMAPABLE: u32 = 1 << 10;
const RAW_TRACEPOINT: u32 = 17;
/// Marks an instruction that loads a constant: the constant is the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;

/// Programs that are attached until this is dropped, and the entry of their map.
pub(super) struct Programs<T> {
    entry: NonNull<T>,
    _attached: Vec<OwnedFd>,
}

/// The first attributes of a new map (below: of a program, an attachment). The others are zero.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

#[repr(C)]
struct ProgLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
}

#[repr(C)]
struct Open {
    name: u64,
    program: u64,
}

/// Makes a call of bpf(2) that returns a descriptor. `None` if the kernel refuses it.
fn bpf<A>(command: c_int, attributes: &A) -> Option<OwnedFd> {
    // SAFETY: the kernel reads the attributes, and what they point to, during the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<A>()) };
    // SAFETY: the descriptor is new, and nothing else owns it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

impl<T> Programs<T> {
    /// Attaches all programs of an object file. `None` where the kernel refuses it.
    ///
    /// # Safety
    ///
    /// `T` must have the layout of the entry of the file's map `map`, and consist of atomics.
    pub(super) unsafe fn attach(object: &[u8]) -> Option<Programs<T>> {
        let length = size_of::<T>();
        let map = MapCreate {
            kind: MAP_TYPE_ARRAY,
            key_size: size_of::<u32>() as u32,
            value_size: length as u32,
            max_entries: 1,
            flags: MMAPABLE,
        };
        let map = bpf(MAP_CREATE, &map)?;
        let file = ElfFile64::<Endianness>::parse(object).ok()?;
        let mut attached = Vec::new();
        for section in file.sections() {
            let Some(point) = section.name().ok()?.strip_prefix("raw_tp/") else { continue };
            let mut code = section.data().ok()?.to_vec();
            for (at, relocation) in section.relocations() {
                let RelocationTarget::Symbol(symbol) = relocation.target() else { return None };
                if file.symbol_by_index(symbol).ok()?.name() != Ok("map") {
                    return None;
                }
                let at = usize::try_from(at).ok()?;
                *code.get_mut(at + 1)? |= PSEUDO_MAP_FD << 4;
                code.get_mut(at + 4..at + 8)?.copy_from_slice(&map.as_raw_fd().to_ne_bytes());
            }
            const INSTRUCTION: usize = 8;
            let load = ProgLoad {
                kind: RAW_TRACEPOINT,
                instructions: (code.len() / INSTRUCTION) as u32,
                code: code.as_ptr() as u64,
                license: c"Dual MIT/GPL".as_ptr() as u64,
            };
            let loaded = bpf(PROG_LOAD, &load)?;
            let name = format!("{point}\0");
            let program = u64::from(loaded.as_raw_fd().cast_unsigned());
            attached.push(bpf(RAW_TRACEPOINT_OPEN, &Open { name: name.as_ptr() as u64, program })?);
        }
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: makes a new mapping, at an address that the kernel chooses, which keeps the map.
        let entry = unsafe { mmap(null_mut(), length, access, flags, map, 0) }.ok()?;
        Some(Programs { entry: NonNull::new(entry)?.cast(), _attached: attached })
    }

    pub(super) fn entry(&self) -> &T {
        // SAFETY: the mapping lives as long as `self`, and is a `T`, as `attach` was promised.
        unsafe { self.entry.as_ref() }
    }
}

impl<T> Drop for Programs<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference to it remains.
        let _ = unsafe { munmap(self.entry.as_ptr().cast(), size_of::<T>()) };
    }
}
