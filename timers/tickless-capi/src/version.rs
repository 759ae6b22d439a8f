//! The library's version, and the check that a program was compiled for it.

use crate::periodic::PeriodicStorage;
use crate::status::{Outcome, Status, entry, failure};
use crate::timer::TimerStorage;
use core::ffi::{CStr, c_char};

/// The version of this header. A new major version can break programs.
pub const TICKLESS_VERSION_MAJOR: u32 = 0;
/// A new minor version adds something, and can break programs while the major version is 0.
pub const TICKLESS_VERSION_MINOR: u32 = 1;
/// A new patch version neither adds something nor breaks programs.
pub const TICKLESS_VERSION_PATCH: u32 = 0;

/// Increases with every change after which programs must be recompiled.
pub const TICKLESS_ABI: u32 = 1;

/// Returns the version of the library, for example "0.1.0", which can differ from the header's.
/// Never null.
#[unsafe(no_mangle)]
pub extern "C" fn tickless_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Checks that this library matches the header that the program was compiled with. Call it once,
/// before any other function, through the macro `TICKLESS_ABI_CHECK()`. Errors:
/// `TICKLESS_ABI_MISMATCH`, after which no other function may be called.
#[unsafe(no_mangle)]
pub extern "C" fn tickless_abi_check(abi: u32, timer_size: usize, periodic_size: usize) -> Status {
    entry(|| check(abi, timer_size, periodic_size))
}

fn check(abi: u32, timer_size: usize, periodic_size: usize) -> Outcome {
    if abi != TICKLESS_ABI {
        let what = format!(
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

    #[test]
    fn header_version_equals_the_crate_version() {
        let parts = [TICKLESS_VERSION_MAJOR, TICKLESS_VERSION_MINOR, TICKLESS_VERSION_PATCH];
        let header = parts.map(|part| part.to_string()).join(".");
        // SAFETY: the function returns a zero-terminated constant.
        let library = unsafe { CStr::from_ptr(tickless_version()) };
        assert_eq!(library.to_str(), Ok(header.as_str()));
    }
}
