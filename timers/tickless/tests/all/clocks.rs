//! The errors of clocks for sources that are not available.

use std::error::Error;
use tickless::clock::{OpenClockError, SystemClock};

#[test]
fn an_unavailable_source_is_an_error_with_the_reason() {
    for path in ["/dev/no-such-clock", "/dev/null", "/dev"] {
        let error = SystemClock::open_ptp(path).unwrap_err();
        match path {
            "/dev/no-such-clock" => assert!(matches!(error, OpenClockError::NoDevice { .. })),
            _ => assert!(matches!(error, OpenClockError::NotAClock { .. }), "{error}"),
        }
        assert!(error.to_string().contains(path), "{error}");
    }
    let error = SystemClock::open(12_345).unwrap_err();
    assert!(
        error.source().is_some()
            && error.to_string().starts_with("clock 12345 does not tell the time"),
        "{error}"
    );
}
