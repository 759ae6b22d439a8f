//! What is written over the begin of a function of the vDSO: a jump to the clock page or, without a
//! clock page, the function's system call.

use super::code::functions;
use super::vdso::image;
use object::Endianness;
use object::read::elf::ElfFile64;
use object::read::{Object, ObjectSymbol};

/// The length of a patch of a function.
const LENGTH: usize = 12;
/// The bytes that the patches need at a function: its own patch, and [`CALL`] behind that.
const ROOM: u64 = 32;
const CALL_AT: u64 = 16;
/// `mov rax, r15`, `syscall`, `int3`: a stopped process makes a system call for the tracer. The
/// call's number comes in r15, because execve(2) stores its own result to rax when it ends.
const CALL: [u8; 6] = [0x4c, 0x89, 0xf8, 0x0f, 0x05, 0xcc];

/// Bytes to write at an offset of the vDSO.
pub(crate) type Patch<const N: usize> = (u64, [u8; N]);

/// The offsets of the functions of the vDSO that read clocks.
pub(crate) struct Functions {
    /// For each function: offset in the vDSO, system call, place in the code of the clock page.
    found: Vec<(u64, u32, usize)>,
}

impl Functions {
    pub(crate) fn of_this_kernel() -> Option<Functions> {
        let image = image()?;
        let file = ElfFile64::<Endianness>::parse(&*image).ok()?;
        let find = |(name, call, place)| {
            let found = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name))?;
            (found.size() >= ROOM).then(|| (found.address(), call, place))
        };
        let found: Vec<_> = functions().into_iter().filter_map(find).collect();
        (!found.is_empty()).then_some(Functions { found })
    }

    /// Returns the patch by which a stopped process makes system calls for the tracer.
    pub(crate) fn call(&self) -> Patch<6> {
        let offset = self.found.first().map_or(0, |(offset, ..)| *offset);
        (offset + CALL_AT, CALL)
    }

    /// Returns the patches that lead to a clock page at this address, or without a page those that
    /// make the system call.
    pub(crate) fn patches(&self, page: Option<u64>) -> impl Iterator<Item = Patch<LENGTH>> {
        self.found.iter().map(move |(offset, call, place)| {
            let mut bytes = [0xcc; LENGTH];
            if let Some(page) = page {
                // movabs rax, address; jmp rax
                bytes[..2].copy_from_slice(&[0x48, 0xb8]);
                bytes[2..10].copy_from_slice(&(page + *place as u64).to_le_bytes());
                bytes[10..].copy_from_slice(&[0xff, 0xe0]);
            } else {
                // mov eax, number; syscall; ret
                bytes[0] = 0xb8;
                bytes[1..5].copy_from_slice(&call.to_le_bytes());
                bytes[5..8].copy_from_slice(&[0x0f, 0x05, 0xc3]);
            }
            (*offset, bytes)
        })
    }
}
