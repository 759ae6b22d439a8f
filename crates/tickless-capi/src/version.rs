//! Which version this is, and whether it is the one that a program was compiled for.

use crate::periodic::PeriodicStorage;
use crate::status::{Outcome, Status, entry, failure};
use crate::timer::TimerStorage;
use core::ffi::{CStr, c_char};

/// The version that this header belongs to: changes that break programs...
pub const TICKLESS_VERSION_MAJOR: u32 = 0;
/// ...changes that add something (and, while the first number is 0, may break programs)...
pub const TICKLESS_VERSION_MINOR: u32 = 1;
/// ...and changes that do neither.
pub const TICKLESS_VERSION_PATCH: u32 = 0;

/// Goes up with every change after which programs must be compiled anew.
pub const TICKLESS_ABI: u32 = 1;

/// The library's version, "0.1.0" say, which may differ from the header's. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn tickless_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Does this library go with the header that a program was compiled with? Call it by the macro
/// `TICKLESS_ABI_CHECK()`, once, before anything else. Errors: `TICKLESS_ABI_MISMATCH`, after
/// which nothing else of the library may be called.
#[unsafe(no_mangle)]
pub extern "C" fn tickless_abi_check(abi: u32, timer_size: usize, periodic_size: usize) -> Status {
    entry(|| check(abi, timer_size, periodic_size))
}

fn check(abi: u32, timer_size: usize, periodic_size: usize) -> Outcome {
    if abi != TICKLESS_ABI {
        let what = format_args!(
            "the program was compiled for interface {abi}, the library has {TICKLESS_ABI}; \
             compile the program with the library's own header"
        );
        return Err(failure(Status::AbiMismatch, what));
    }
    let sizes = [size_of::<TimerStorage>(), size_of::<PeriodicStorage>()];
    if [timer_size, periodic_size] != sizes {
        let what = "the program was compiled with storage of another size; compile it with the \
                    library's own header";
        return Err(failure(Status::AbiMismatch, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the header's numbers are the crate's.
    #[test]
    fn one_version() {
        let parts = [TICKLESS_VERSION_MAJOR, TICKLESS_VERSION_MINOR, TICKLESS_VERSION_PATCH];
        let header = parts.map(|part| part.to_string()).join(".");
        // SAFETY: a constant with a zero at its end.
        let library = unsafe { CStr::from_ptr(tickless_version()) };
        assert_eq!(library.to_str(), Ok(header.as_str()));
    }

    #[test]
    fn another_header_is_noticed() {
        let (timer, periodic) = (size_of::<TimerStorage>(), size_of::<PeriodicStorage>());
        assert_eq!(tickless_abi_check(TICKLESS_ABI, timer, periodic), Status::Ok);
        assert_eq!(tickless_abi_check(TICKLESS_ABI + 1, timer, periodic), Status::AbiMismatch);
        assert_eq!(tickless_abi_check(TICKLESS_ABI, timer + 8, periodic), Status::AbiMismatch);
        assert_eq!(tickless_abi_check(TICKLESS_ABI, timer, 0), Status::AbiMismatch);
    }
}
