//! The clock page: code and data that programs read the clock from, without a system call.

mod code;
pub(crate) mod patch;
pub(crate) mod shared;
pub(crate) mod vdso;
