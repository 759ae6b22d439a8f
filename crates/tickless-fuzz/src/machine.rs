//! Bytes as the file of a simulated machine: read, or refused with its line; what was read is
//! written so that it reads alike.

use tickless_machine::spec::Spec;

/// Performs `bytes`.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Spec::parse("fuzz", text) {
        Ok(spec) => {
            let again = Spec::parse("again", &spec.to_toml());
            let again =
                again.unwrap_or_else(|error| panic!("what was written is refused: {error}"));
            assert_eq!(again.fingerprint(), spec.fingerprint(), "what was written reads otherwise");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
