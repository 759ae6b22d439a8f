//! Deadlines of requests in HTTP headers, in and out of
//! [`tickless::future::deadline_scope`].
//!
//! ```
//! use std::time::Duration;
//! use http::HeaderMap;
//! use tickless::VirtualTime;
//! use tickless::future::remaining;
//! use tickless_http::DeadlineHeader;
//!
//! let header = DeadlineHeader::grpc().margin(Duration::from_millis(20));
//! let time = VirtualTime::new();
//! let mut received = HeaderMap::new();
//! received.insert("grpc-timeout", "1500m".parse()?);
//! let request = header.scope(time.timers(), &received, async {
//!     assert_eq!(remaining(), Some(Duration::from_millis(1500)));
//!     let mut sent = HeaderMap::new();
//!     header.write(&mut sent).map(|()| sent)
//! });
//! assert_eq!(time.block_on(request)??["grpc-timeout"], "1480000u");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `tickless-tower` has layers for this; in a service of hyper's, call `scope` and `write`.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::time::Duration;
use tickless::future::{DeadlineScope, TimerSource, remaining};
use tickless::time::Instant;

/// A header with the time that a request may take. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DeadlineHeader {
    name: HeaderName,
    format: Format,
    margin: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Grpc,
    Millis,
}

/// The units of `grpc-timeout`, and their nanoseconds.
const UNITS: [(char, u128); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    ('H', 3_600_000_000_000),
];

/// The largest value in any unit: gRPC allows eight digits.
const GRPC_MAX: u128 = 99_999_999;

impl DeadlineHeader {
    /// The header `grpc-timeout`: up to eight digits and a unit, one of `H`, `M`, `S`, `m`
    /// (milliseconds), `u` and `n`.
    pub fn grpc() -> DeadlineHeader {
        let name = HeaderName::from_static("grpc-timeout");
        DeadlineHeader { name, format: Format::Grpc, margin: Duration::ZERO }
    }

    /// A header with a number of milliseconds, such as Envoy's `x-envoy-expected-rq-timeout-ms`.
    pub fn millis(name: HeaderName) -> DeadlineHeader {
        DeadlineHeader { name, format: Format::Millis, margin: Duration::ZERO }
    }

    /// Reduces the time that [`write`](Self::write) sends by `margin`, so that the answer has time
    /// to travel.
    #[must_use]
    pub fn margin(self, margin: Duration) -> DeadlineHeader {
        DeadlineHeader { margin, ..self }
    }

    /// Returns the time that the request may take. Returns `None` without this header, and if its
    /// value is malformed: such a request has no deadline of its own.
    pub fn read(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(&self.name)?.to_str().ok()?;
        let (digits, unit) = match self.format {
            Format::Grpc => text.split_at_checked(text.len().checked_sub(1)?)?,
            Format::Millis => (text, "m"),
        };
        let nanos = UNITS.iter().find(|(name, _)| unit.strip_prefix(*name) == Some(""))?.1;
        // `parse` alone would accept a sign.
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let value = u128::from(digits.parse::<u64>().ok()?);
        if matches!(self.format, Format::Grpc) && digits.len() > 8 {
            return None;
        }
        Some(Duration::from_nanos(u64::try_from(value * nanos).unwrap_or(u64::MAX)))
    }

    /// Returns when a request with these headers must be done, counted from now on the clock of the
    /// timers; [`Instant::NEVER`] if [`read`](Self::read) returns `None`.
    pub fn deadline(&self, timers: &TimerSource, headers: &HeaderMap) -> Instant {
        self.read(headers).map_or(Instant::NEVER, |left| timers.now() + left)
    }

    /// Runs `future` in a deadline scope until [`deadline`](Self::deadline). `timers` are
    /// `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn scope<F: Future>(
        &self,
        timers: impl Into<TimerSource>,
        headers: &HeaderMap,
        future: F,
    ) -> DeadlineScope<F> {
        let timers = timers.into();
        timers.deadline_scope(self.deadline(&timers, headers), future)
    }

    /// Sets this header to the time that is left in the deadline scope of the caller, less the
    /// margin, rounded down to the unit. Keeps the value that the headers have if it is less.
    /// Outside of all scopes, changes nothing.
    ///
    /// # Errors
    ///
    /// [`NoTimeLeft`] if no time is left: do not send the request.
    pub fn write(&self, headers: &mut HeaderMap) -> Result<(), NoTimeLeft> {
        let Some(left) = remaining() else { return Ok(()) };
        let left = left.saturating_sub(self.margin);
        let left = self.read(headers).map_or(left, |asked| asked.min(left));
        let text = match self.format {
            Format::Grpc => {
                let in_unit = |&(name, nanos): &(char, u128)| (left.as_nanos() / nanos, name);
                let fits = UNITS.iter().map(in_unit).find(|(value, _)| *value <= GRPC_MAX);
                fits.filter(|(value, _)| *value > 0).map(|(value, name)| format!("{value}{name}"))
            }
            Format::Millis => Some(left.as_millis()).filter(|ms| *ms > 0).map(|ms| ms.to_string()),
        };
        let value = text.and_then(|text| HeaderValue::try_from(text).ok()).ok_or(NoTimeLeft)?;
        headers.insert(&self.name, value);
        Ok(())
    }
}

/// No time is left for a request before its deadline, after the margin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoTimeLeft;

impl fmt::Display for NoTimeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no time is left for the request before its deadline")
    }
}

impl std::error::Error for NoTimeLeft {}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless::VirtualTime;

    const NS: Duration = Duration::from_nanos(1);
    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    fn envoy() -> DeadlineHeader {
        DeadlineHeader::millis(HeaderName::from_static("x-envoy-expected-rq-timeout-ms"))
    }

    fn with(header: &DeadlineHeader, value: &[u8]) -> HeaderMap {
        let value = HeaderValue::from_bytes(value).expect("a value");
        HeaderMap::from_iter([(header.name.clone(), value)])
    }

    #[test]
    fn values_are_read_as_grpc_defines_them() {
        let grpc = DeadlineHeader::grpc();
        for (text, expected) in [
            ("2H", 2 * HOUR),
            ("3M", 180 * SECOND),
            ("00000007S", 7 * SECOND),
            ("1500m", 1500 * MS),
            ("8u", 8000 * NS),
            ("99999999n", 99_999_999 * NS),
            ("0n", Duration::ZERO),
            // Beyond the range of the library's clock, about 584 years.
            ("99999999H", Duration::from_nanos(u64::MAX)),
        ] {
            assert_eq!(grpc.read(&with(&grpc, text.as_bytes())), Some(expected), "{text}");
        }
        let malformed =
            ["", "S", "5", "5s", "+5S", "-5S", "5 S", " 5S", "1.5S", "5SS", "100000000n"];
        for text in malformed {
            assert_eq!(grpc.read(&with(&grpc, text.as_bytes())), None, "{text:?}");
        }
        assert_eq!(grpc.read(&with(&grpc, "5é".as_bytes())), None);
        assert_eq!(envoy().read(&with(&envoy(), b"250")), Some(250 * MS));
        let most = Some(Duration::from_nanos(u64::MAX));
        assert_eq!(envoy().read(&with(&envoy(), b"18446744073709551615")), most);
        for text in ["", "+5", "5m", "18446744073709551616"] {
            assert_eq!(envoy().read(&with(&envoy(), text.as_bytes())), None, "{text:?}");
        }
        assert_eq!(grpc.read(&with(&envoy(), b"250")), None, "another header");
    }

    /// Returns the value that is sent when `left` is left and the headers have `before`.
    fn sent(header: &DeadlineHeader, left: Duration, before: &str) -> Result<String, NoTimeLeft> {
        let time = VirtualTime::new();
        let mut headers = with(header, before.as_bytes());
        let write = async { header.write(&mut headers) };
        time.block_on(time.timers().deadline_scope(time.now() + left, write)).expect("ready")?;
        Ok(headers[&header.name].to_str().expect("a text").to_owned())
    }

    #[test]
    fn values_are_rounded_down_and_reduced_by_the_margin() {
        let grpc = DeadlineHeader::grpc();
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(sent(&grpc, NS, ""), ok("1n"));
        assert_eq!(sent(&grpc, 99_999_999 * NS, ""), ok("99999999n"));
        assert_eq!(sent(&grpc, 100_000_999 * NS, ""), ok("100000u"));
        assert_eq!(sent(&grpc, 101 * SECOND - NS, ""), ok("100999m"));
        assert_eq!(sent(&grpc, 100_000 * HOUR + SECOND, ""), ok("6000000M"));
        assert_eq!(sent(&envoy(), 2 * MS - NS, ""), ok("1"));
        assert_eq!(sent(&grpc, SECOND, "2S"), ok("1000000u"));
        assert_eq!(sent(&grpc, SECOND, "20m"), ok("20000000n"), "less was asked for");
        let margin = grpc.clone().margin(20 * MS);
        assert_eq!(sent(&margin, SECOND, ""), ok("980000u"));
        assert_eq!(sent(&margin, 20 * MS + NS, ""), ok("1n"));
        for (header, left) in [(&margin, 20 * MS), (&margin, MS), (&grpc, Duration::ZERO)] {
            assert_eq!(sent(header, left, ""), Err(NoTimeLeft));
        }
        assert_eq!(sent(&envoy(), MS - NS, ""), Err(NoTimeLeft));
        let mut untouched = with(&grpc, b"7S");
        assert_eq!((grpc.write(&mut untouched), &untouched), (Ok(()), &with(&grpc, b"7S")));
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
