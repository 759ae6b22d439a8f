//! The counters of this machine that programs can use: the system's clocks and PTP hardware clocks.

use crate::platform::clock_error::OpenClockError;
use core::sync::atomic::{AtomicU64, Ordering};
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use tickless_core::clock::counter::Counter;

/// One of the system's clocks, as a counter of nanoseconds. A reading costs about 30 ns (through
/// the vDSO) or a system call; for several threads, see [`Combined`](super::combined::Combined).
#[derive(Debug)]
pub struct SystemClock {
    id: i32,
    name: Cow<'static, str>,
    last: LastReading,
    /// The open device of a PTP clock, whose `id` is valid only while the device is open.
    _device: Option<File>,
}

impl SystemClock {
    /// Wall-clock time, which may be set.
    pub const REALTIME: i32 = libc::CLOCK_REALTIME;
    /// Time since an arbitrary start, without suspends.
    pub const MONOTONIC: i32 = libc::CLOCK_MONOTONIC;
    /// Like [`MONOTONIC`](SystemClock::MONOTONIC), but at the hardware's own rate, which NTP does
    /// not adjust. Reading it is a system call where the vDSO does not support it.
    pub const MONOTONIC_RAW: i32 = libc::CLOCK_MONOTONIC_RAW;
    /// Time since boot, with suspends.
    pub const BOOTTIME: i32 = libc::CLOCK_BOOTTIME;
    /// International atomic time, if the system's offset from UTC was set; otherwise UTC.
    pub const TAI: i32 = libc::CLOCK_TAI;
    /// CPU time of all threads of this process. Reading it is a system call.
    pub const PROCESS_CPU: i32 = libc::CLOCK_PROCESS_CPUTIME_ID;

    /// Opens one of the clocks above, or any other that `clock_gettime` can read. Reads it once.
    ///
    /// # Errors
    ///
    /// [`OpenClockError::NotAClock`] if the clock cannot be read.
    pub fn open(id: i32) -> Result<SystemClock, OpenClockError> {
        let name = match id {
            SystemClock::REALTIME => "CLOCK_REALTIME",
            SystemClock::MONOTONIC => "CLOCK_MONOTONIC",
            SystemClock::MONOTONIC_RAW => "CLOCK_MONOTONIC_RAW",
            SystemClock::BOOTTIME => "CLOCK_BOOTTIME",
            SystemClock::TAI => "CLOCK_TAI",
            SystemClock::PROCESS_CPU => "CLOCK_PROCESS_CPUTIME_ID",
            number => return SystemClock::checked(id, format!("clock {number}").into(), None),
        };
        SystemClock::checked(id, name.into(), None)
    }

    /// Opens a PTP hardware clock, for example `/dev/ptp0`. Reads it once. A reading costs a system
    /// call and usually a bus transaction, a microsecond or more.
    ///
    /// # Errors
    ///
    /// [`OpenClockError`], which tells apart a missing device, a lack of permission, and a device
    /// that is not a clock.
    pub fn open_ptp(path: impl AsRef<Path>) -> Result<SystemClock, OpenClockError> {
        let path = path.as_ref();
        let device = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenClockError::NoDevice { path: path.into() },
            io::ErrorKind::PermissionDenied => OpenClockError::NoPermission { path: path.into() },
            _ => OpenClockError::System { path: path.into(), error },
        })?;
        let id = dynamic_clock(&device);
        SystemClock::checked(id, path.display().to_string().into(), Some(device))
    }

    fn checked(
        id: i32,
        name: Cow<'static, str>,
        device: Option<File>,
    ) -> Result<SystemClock, OpenClockError> {
        match clock_gettime(id) {
            Ok(_) => Ok(SystemClock { id, name, last: LastReading::default(), _device: device }),
            Err(error) => Err(OpenClockError::NotAClock { what: name.into_owned(), error }),
        }
    }

    /// Returns the clock's name, such as `CLOCK_TAI`, or the path of its device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many readings failed: because the thread or process of a CPU-time clock has
    /// ended, or a PTP device was removed. A failed reading returns the last value.
    pub fn failures(&self) -> u64 {
        self.last.failures.load(Ordering::Relaxed)
    }
}

impl Counter for SystemClock {
    #[inline]
    fn read(&self) -> u64 {
        match (clock_gettime(self.id), self.id) {
            // Reading these clocks never fails, so leave `last`, whose cache line is shared.
            (Ok(now), Self::MONOTONIC | Self::REALTIME | Self::BOOTTIME) => now,
            (reading, _) => self.last.record(reading),
        }
    }

    #[inline]
    fn bits(&self) -> u32 {
        64
    }
}

/// The last value of a clock, which a failed reading returns: the clock seems to have stopped.
#[derive(Debug, Default)]
struct LastReading {
    value: AtomicU64,
    failures: AtomicU64,
}

impl LastReading {
    /// Returns a reading. If the clock could not be read, counts that and returns the last value.
    #[inline]
    fn record(&self, reading: io::Result<u64>) -> u64 {
        match reading {
            Ok(now) => {
                self.value.store(now, Ordering::Relaxed);
                now
            }
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.value.load(Ordering::Relaxed)
            }
        }
    }
}

/// Returns the clock id of a device, by its open file.
fn dynamic_clock(device: &File) -> i32 {
    // The kernel's encoding of a clock by its file descriptor, from clock_getres(2).
    const BY_FILE: i32 = 3;
    !device.as_raw_fd() << 3 | BY_FILE
}

#[inline]
fn clock_gettime(id: i32) -> io::Result<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, to the local variable.
    let status = unsafe { libc::clock_gettime(id, &mut now) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a failed reading, as after a device's removal, returns the last value and is counted.
    #[test]
    fn a_failed_reading_returns_the_last_value() {
        let last = LastReading::default();
        assert_eq!(last.record(Ok(7)), 7);
        let removed = || Err(io::Error::from_raw_os_error(libc::ENODEV));
        assert_eq!([last.record(removed()), last.record(removed()), last.record(Ok(9))], [7, 7, 9]);
        assert_eq!(last.failures.into_inner(), 2);
    }
}
