//! Structs that carry their own size, so that later versions can append fields.
//!
//! If the program is older than the library, the fields that the program does not know are taken as
//! zero, which selects their defaults. If the program is newer, the bytes that the library does not
//! know must be zero, otherwise the call fails.

use crate::status::{Outcome, Status, failure};

/// A struct of integers whose first field is its size, and for which all zeros are a valid value.
///
/// # Safety
/// Every bit pattern is a valid value, there is no padding, and the first field is a `usize`.
pub(crate) unsafe trait Grows: Copy + Default {}

/// Reads a caller's struct, or returns the default if the pointer is null.
///
/// # Safety
/// `from` is null, or points to as many readable bytes as its first word states.
pub(crate) unsafe fn read<T: Grows>(from: *const T) -> Outcome<T> {
    let mut value = T::default();
    if from.is_null() {
        return Ok(value);
    }
    // SAFETY: the caller promises that `from` points to at least one readable word.
    let size = unsafe { size_at(from) }?;
    let known = size.min(size_of::<T>());
    // SAFETY: `known` is at most the size that the caller promises and the size of `T`; every bit
    // pattern is a valid `T`.
    unsafe {
        let to = (&raw mut value).cast::<u8>();
        core::ptr::copy_nonoverlapping(from.cast::<u8>(), to, known);
    }
    // SAFETY: the caller promises `size` readable bytes.
    let is_zero = |at| unsafe { from.cast::<u8>().add(at).read() == 0 };
    if !(known..size).all(is_zero) {
        let what = "the options set a field that this version of the library does not know";
        return Err(failure(Status::Unsupported, what));
    }
    Ok(value)
}

/// Writes as many fields as the caller's struct has room for, and sets further bytes to zero.
///
/// # Safety
/// `to` is null, or points to as many writable bytes as its first word states.
pub(crate) unsafe fn write<T: Grows>(to: *mut T, value: &T) -> Outcome {
    if to.is_null() {
        return Err(failure(Status::NullPointer, "the pointer for the result is null"));
    }
    // SAFETY: the caller promises that `to` points to at least one readable word.
    let size = unsafe { size_at(to) }?;
    let known = size.min(size_of::<T>());
    let word = size_of::<usize>();
    // SAFETY: `known` is at most the size of `value` and the size that the caller promises, which
    // is at least a word; the remaining bytes lie within that size too.
    unsafe {
        let (from, to) = (core::ptr::from_ref(value).cast::<u8>(), to.cast::<u8>());
        core::ptr::copy_nonoverlapping(from.add(word), to.add(word), known - word);
        core::ptr::write_bytes(to.add(known), 0, size - known);
    }
    Ok(())
}

/// No version of a struct is larger than this.
const SIZE_MAX: usize = 4096;

/// # Safety
/// `at` points to a readable word.
unsafe fn size_at<T: Grows>(at: *const T) -> Outcome<usize> {
    // SAFETY: the caller promises that `at` points to a readable word.
    let size = unsafe { at.cast::<usize>().read_unaligned() };
    if (size_of::<usize>()..=SIZE_MAX).contains(&size) {
        return Ok(size);
    }
    let what = format!("a struct has the size {size}; set its `size` to its sizeof");
    Err(failure(Status::Unsupported, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Default, PartialEq, Debug)]
    struct Two {
        size: usize,
        one: u64,
        two: u64,
    }
    // SAFETY: integers without padding, a size first.
    unsafe impl Grows for Two {}

    fn read_of(words: &[u64]) -> Outcome<Two> {
        // SAFETY: the tests below state no more bytes than the array has.
        unsafe { read(words.as_ptr().cast()) }
    }

    #[test]
    fn structs_of_older_and_newer_programs_are_read() {
        assert_eq!(read_of(&[16, 7]).unwrap(), Two { size: 16, one: 7, two: 0 });
        assert_eq!(read_of(&[24, 7, 8]).unwrap(), Two { size: 24, one: 7, two: 8 });
        assert_eq!(read_of(&[32, 7, 8, 0]).unwrap(), Two { size: 32, one: 7, two: 8 });
        assert_eq!(read_of(&[32, 7, 8, 1]), Err(Status::Unsupported));
        assert_eq!(read_of(&[0]), Err(Status::Unsupported));
        assert_eq!(read_of(&[u64::MAX]), Err(Status::Unsupported));
        // SAFETY: the function accepts null.
        assert_eq!(unsafe { read::<Two>(core::ptr::null()) }, Ok(Two::default()));
    }

    #[test]
    fn results_are_cut_to_the_size_of_the_callers_struct() {
        let value = Two { size: 24, one: 7, two: 8 };
        let filled = |mut words: [u64; 5]| {
            // SAFETY: the sizes below are at most the size of the array.
            let status = unsafe { write(words.as_mut_ptr().cast::<Two>(), &value) };
            status.map(|()| words)
        };
        assert_eq!(filled([16, 1, 1, 1, 1]), Ok([16, 7, 1, 1, 1]));
        assert_eq!(filled([32, 1, 1, 1, 1]), Ok([32, 7, 8, 0, 1]));
        assert_eq!(filled([7, 1, 1, 1, 1]), Err(Status::Unsupported));
    }
}
