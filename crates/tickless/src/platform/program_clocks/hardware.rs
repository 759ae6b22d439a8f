//! Counters of this machine, for programs: the TSC, the system's clocks, PTP hardware clocks.

use crate::platform::clock_error::{Fallback, OpenClockError};
use crate::platform::comparison::measure_tsc;
use crate::platform::cpu::CpuMap;
use crate::platform::{counter, driver};
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use tickless_core::clock::counter::{Counter, Hertz, Rating, Width};
use tickless_core::clock::skew::{Handover, Skew};
use tickless_core::time::{CpuId, Ns};

/// A clock of the system's, as `clock_gettime` numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClockId(pub i32);

impl ClockId {
    /// The time of day; may be set.
    pub const REALTIME: ClockId = ClockId(libc::CLOCK_REALTIME);
    /// Time since some beginning, without suspends.
    pub const MONOTONIC: ClockId = ClockId(libc::CLOCK_MONOTONIC);
    /// The same, at the rate of the hardware. A system call where the vDSO does not know it.
    pub const MONOTONIC_RAW: ClockId = ClockId(libc::CLOCK_MONOTONIC_RAW);
    /// Time since the boot, with suspends.
    pub const BOOTTIME: ClockId = ClockId(libc::CLOCK_BOOTTIME);
    /// International atomic time, if the system has been told.
    pub const TAI: ClockId = ClockId(libc::CLOCK_TAI);
    /// CPU time of this process, over all its threads. A system call.
    pub const PROCESS_CPU: ClockId = ClockId(libc::CLOCK_PROCESS_CPUTIME_ID);
}

/// May a reading of the TSC move among the instructions around it?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TscOrder {
    /// It may, by some nanoseconds: right for timeouts.
    #[default]
    Unordered,
    /// It may not: right for stamps that threads compare. Some 5-15 ns more.
    Ordered,
}

/// The CPU's time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct Tsc {
    order: TscOrder,
    frequency: Hertz,
}

impl Tsc {
    /// The TSC, if the kernel itself keeps time with it. Measures its frequency, which takes
    /// 10 ms and is right within some 10 parts in a million.
    ///
    /// # Errors
    ///
    /// Why the clock cannot be had: there is none, it is not to be trusted, or the system refuses
    /// it.
    pub fn new(order: TscOrder) -> Result<Tsc, Fallback> {
        counter::trust()?;
        Ok(Tsc { order, frequency: measure_tsc(Ns::from_ms(10)) })
    }

    /// Do all CPUs of this process read it alike? Takes one thread per CPU and some
    /// milliseconds.
    pub fn skew(&self) -> Skew {
        const TURNS: u32 = 5_000;
        let handover = Handover::<AtomicU64>::new(Width::FULL, counter::read_ordered());
        let map = CpuMap::of_this_process();
        std::thread::scope(|s| {
            for base in 0..map.bases() {
                let cpu = map.cpu_of(CpuId(base));
                let handover = &handover;
                // A CPU whose thread cannot be had goes unchecked.
                let _ = std::thread::Builder::new().spawn_scoped(s, move || {
                    if let Some(cpu) = cpu {
                        driver::stay_on(cpu);
                    }
                    (0..TURNS).for_each(|_| handover.take_turn(counter::read_ordered));
                });
            }
        });
        handover.skew()
    }
}

impl Counter for Tsc {
    #[inline]
    fn read(&self) -> u64 {
        match self.order {
            TscOrder::Unordered => counter::read(),
            TscOrder::Ordered => counter::read_ordered(),
        }
    }

    #[inline]
    fn width(&self) -> Width {
        Width::FULL
    }

    fn frequency(&self) -> Hertz {
        self.frequency
    }

    fn rating(&self) -> Rating {
        Rating::FAST
    }

    fn name(&self) -> &str {
        match self.order {
            TscOrder::Unordered => "tsc",
            TscOrder::Ordered => "tsc, ordered",
        }
    }
}

/// A clock of the system's, by `clock_gettime`: a counter of nanoseconds.
///
/// Depending on the clock and the machine a reading is some 30 ns (through the vDSO) or a
/// system call.
#[derive(Debug)]
pub struct SystemClock {
    id: ClockId,
    last: LastReading,
}

impl SystemClock {
    /// The clock, if it can be read. [`OpenClockError::NotAClock`] if not.
    ///
    /// # Errors
    ///
    /// Why the clock cannot be had: there is none, it is not to be trusted, or the system refuses
    /// it.
    pub fn open(id: ClockId) -> Result<SystemClock, OpenClockError> {
        let clock = SystemClock { id, last: LastReading::default() };
        match clock_gettime(id) {
            Ok(_) => Ok(clock),
            Err(error) => Err(OpenClockError::NotAClock { what: format!("clock {}", id.0), error }),
        }
    }

    /// Readings that the system refused: the thread or process whose time it is has ended.
    pub fn failures(&self) -> u64 {
        self.last.failures()
    }
}

impl Counter for SystemClock {
    #[inline]
    fn read(&self) -> u64 {
        match (clock_gettime(self.id), self.id) {
            // These never fail, and threads that read them need not share a line.
            (Ok(now), ClockId::MONOTONIC | ClockId::REALTIME | ClockId::BOOTTIME) => now,
            (reading, _) => self.last.or(reading),
        }
    }

    #[inline]
    fn width(&self) -> Width {
        Width::FULL
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        if self.id == ClockId::MONOTONIC { Rating::GOOD } else { Rating::SLOW }
    }

    fn name(&self) -> &str {
        match self.id {
            ClockId::REALTIME => "CLOCK_REALTIME",
            ClockId::MONOTONIC => "CLOCK_MONOTONIC",
            ClockId::MONOTONIC_RAW => "CLOCK_MONOTONIC_RAW",
            ClockId::BOOTTIME => "CLOCK_BOOTTIME",
            ClockId::TAI => "CLOCK_TAI",
            ClockId::PROCESS_CPU => "CLOCK_PROCESS_CPUTIME_ID",
            _ => "a clock by its number",
        }
    }
}

/// A PTP hardware clock, `/dev/ptp0` for example: a counter of nanoseconds in a network card,
/// or of a hypervisor. A reading is a system call and usually a transaction on a bus, a
/// microsecond or more: read it through [`Combined`](super::combined::Combined).
#[derive(Debug)]
pub struct PtpClock {
    /// Keeps the clock's number valid.
    _device: File,
    id: ClockId,
    name: String,
    last: LastReading,
}

impl PtpClock {
    /// Opens the device and reads it once.
    ///
    /// # Errors
    ///
    /// Why the clock cannot be had: there is none, it is not to be trusted, or the system refuses
    /// it.
    pub fn open(path: impl AsRef<Path>) -> Result<PtpClock, OpenClockError> {
        let path = path.as_ref();
        let device = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenClockError::NoDevice { path: path.into() },
            io::ErrorKind::PermissionDenied => OpenClockError::NoPermission { path: path.into() },
            _ => OpenClockError::System { path: path.into(), error },
        })?;
        let id = dynamic_clock(&device);
        let name = path.display().to_string();
        match clock_gettime(id) {
            Ok(_) => Ok(PtpClock { _device: device, id, name, last: LastReading::default() }),
            Err(error) => Err(OpenClockError::NotAClock { what: name, error }),
        }
    }

    /// Readings that the system refused: the device has gone away.
    pub fn failures(&self) -> u64 {
        self.last.failures()
    }
}

impl Counter for PtpClock {
    #[inline]
    fn read(&self) -> u64 {
        self.last.or(clock_gettime(self.id))
    }

    #[inline]
    fn width(&self) -> Width {
        Width::FULL
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        Rating::SLOW
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// What a clock showed last, for when it cannot be read any more: it stands still then, which
/// a watchdog sees.
#[derive(Debug, Default)]
struct LastReading {
    value: AtomicU64,
    failures: AtomicU64,
}

impl LastReading {
    #[inline]
    fn or(&self, reading: io::Result<u64>) -> u64 {
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

    fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// The number of the clock behind an open device.
fn dynamic_clock(device: &File) -> ClockId {
    // The kernel's encoding of a clock by its file descriptor, from clock_getres(2).
    const BY_FILE: i32 = 3;
    ClockId(!device.as_raw_fd() << 3 | BY_FILE)
}

/// Any clock, in nanoseconds.
#[inline]
fn clock_gettime(id: ClockId) -> io::Result<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel or the vDSO writes a timespec, to one that is ours.
    let status = unsafe { libc::clock_gettime(id.0, &mut now) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a clock that cannot be read any more, as when its device has gone away, stands still
    /// and says so; a clock over it sees that as a frozen counter.
    #[test]
    fn a_clock_that_goes_away_stands_still() {
        let last = LastReading::default();
        assert_eq!(last.or(Ok(7)), 7);
        let gone = || Err(io::Error::from_raw_os_error(libc::ENODEV));
        assert_eq!((last.or(gone()), last.or(gone()), last.failures()), (7, 7, 2));
        assert_eq!((last.or(Ok(9)), last.failures()), (9, 2));
    }
}
