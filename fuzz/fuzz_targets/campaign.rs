#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickless_fuzz::campaign::run(bytes));
