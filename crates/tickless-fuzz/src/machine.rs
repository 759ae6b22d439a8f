//! Bytes as the file of a simulated machine. Reading succeeds or returns an error, and a machine
//! that was read is written and read back equally.

use tickless_machine::spec::Spec;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Spec::parse("fuzz", text) {
        Ok(spec) => {
            let again = Spec::parse("again", &spec.to_toml()).expect("it was written");
            assert_eq!(again.fingerprint(), spec.fingerprint(), "it is read back differently");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
