//! A fuzz target that reads the bytes as the file of a simulated machine. Checks that reading
//! succeeds or returns an error without panicking, and that writing the machine and reading it
//! again gives an equal machine.

use tickless_machine::spec::Spec;

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
