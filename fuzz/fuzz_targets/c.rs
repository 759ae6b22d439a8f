#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickless_fuzz::c::run(bytes));
