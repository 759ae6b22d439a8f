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
//! `tickless-tower` has a layer for this; in a service of hyper's, call `scope` and `write`.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::time::Duration;
use tickless::future::{DeadlineScope, TimerSource, remaining};
use tickless::time::Instant;

/// A header with the time that a request may take. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DeadlineHeader {
    name: HeaderName,
    /// The suffixes of values, and their nanoseconds, the finest first.
    units: &'static [(&'static str, u128)],
    digits_max: u32,
    margin: Duration,
}

impl DeadlineHeader {
    /// The header `grpc-timeout`: up to eight digits and a unit, one of `H`, `M`, `S`, `m`
    /// (milliseconds), `u` and `n`.
    pub fn grpc() -> DeadlineHeader {
        let units = &[
            ("n", 1),
            ("u", 1_000),
            ("m", 1_000_000),
            ("S", 1_000_000_000),
            ("M", 60_000_000_000),
            ("H", 3_600_000_000_000),
        ];
        let name = HeaderName::from_static("grpc-timeout");
        DeadlineHeader { name, units, digits_max: 8, margin: Duration::ZERO }
    }

    /// A header with a number of milliseconds, such as Envoy's `x-envoy-expected-rq-timeout-ms`.
    pub fn millis(name: HeaderName) -> DeadlineHeader {
        DeadlineHeader { name, units: &[("", 1_000_000)], digits_max: 20, margin: Duration::ZERO }
    }

    /// Reduces the time that [`write`](Self::write) sends by `margin`, for the answer's travel.
    #[must_use]
    pub fn margin(self, margin: Duration) -> DeadlineHeader {
        DeadlineHeader { margin, ..self }
    }

    /// Returns the time that the request may take. Returns `None` without this header, and if its
    /// value is malformed: such a request has no deadline of its own.
    pub fn read(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(&self.name)?.to_str().ok()?;
        let split = |(unit, nanos): &(&str, u128)| Some((text.strip_suffix(*unit)?, *nanos));
        let (digits, nanos) = self.units.iter().find_map(split)?;
        // `parse` alone would accept a sign and more digits.
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
        if !are_digits || digits.len() > self.digits_max as usize {
            return None;
        }
        let nanos = u128::from(digits.parse::<u64>().ok()?) * nanos;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
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
        let in_units = self.units.iter().map(|(unit, nanos)| (left.as_nanos() / nanos, unit));
        let fits = in_units.take_while(|(value, _)| *value > 0);
        let mut fits = fits.skip_while(|(value, _)| *value >= 10_u128.pow(self.digits_max));
        let (value, unit) = fits.next().ok_or(NoTimeLeft)?;
        let value = HeaderValue::try_from(format!("{value}{unit}")).map_err(|_| NoTimeLeft)?;
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
        let margin = &grpc.clone().margin(20 * MS);
        for (header, left, before, expected) in [
            (&grpc, NS, "", ok("1n")),
            (&grpc, 99_999_999 * NS, "", ok("99999999n")),
            (&grpc, 100_000_999 * NS, "", ok("100000u")),
            (&grpc, 101 * SECOND - NS, "", ok("100999m")),
            (&grpc, 100_000 * HOUR + SECOND, "", ok("6000000M")),
            (&grpc, SECOND, "2S", ok("1000000u")),
            // The client asks for less.
            (&grpc, SECOND, "20m", ok("20000000n")),
            (&grpc, Duration::ZERO, "", Err(NoTimeLeft)),
            (&envoy(), 2 * MS - NS, "", ok("1")),
            (&envoy(), MS - NS, "", Err(NoTimeLeft)),
            (margin, SECOND, "", ok("980000u")),
            (margin, 20 * MS + NS, "", ok("1n")),
            (margin, 20 * MS, "", Err(NoTimeLeft)),
            (margin, MS, "", Err(NoTimeLeft)),
        ] {
            assert_eq!(sent(header, left, before), expected, "{left:?}");
        }
        let mut untouched = with(&grpc, b"7S");
        assert_eq!((grpc.write(&mut untouched), &untouched), (Ok(()), &with(&grpc, b"7S")));
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
