//! The virtual clock: its line (time by counter), and the page from which programs read it.

use crate::error::WarpError;
use crate::line::{CLOCKS, Line, Ns, Offsets};
use crate::options::{Options, Pace};
use crate::page::shared::SharedPage;
use crate::sys::events::{clock, counter};
use std::fs;
use std::time::Duration;

/// What virtual time is computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// The time-stamp counter, which programs can read as well.
    Counter,
    /// The kernel's monotonic clock, used where the time-stamp counter is not reliable.
    Kernel,
}

impl Source {
    fn read(self) -> u64 {
        match self {
            Source::Counter => counter(),
            Source::Kernel => clock(libc::CLOCK_MONOTONIC),
        }
    }
}

pub(crate) struct VirtualClock {
    line: Line,
    pub(crate) offsets: Offsets,
    source: Source,
    /// The clock page; `None` where programs have to read clocks by system calls.
    pub(crate) page: Option<SharedPage>,
    pace: Pace,
    begin: Ns,
    /// What programs read where the counter is trapped: counts as a function of virtual time.
    virtual_counter: Line,
    /// Counter and monotonic clock when the run began, from which the counter's rate is computed.
    baseline: (u64, u64),
    /// When to compute the rate again: the older the baseline, the more exact the rate.
    refine_at: u64,
    pub(crate) jumps: u64,
}

/// The slope 1, of a clock whose counter counts nanoseconds. Slopes are in units of 2^-32.
const ONE: f64 = 4_294_967_296.0;
const FIRST_BASELINE_NS: u64 = 200_000;

impl VirtualClock {
    /// Starts the clock at the kernel's time, or with the realtime clock at `options.start_ns`.
    pub(crate) fn new(options: &Options) -> Result<VirtualClock, WarpError> {
        let reliable = is_counter_reliable();
        let source = if reliable { Source::Counter } else { Source::Kernel };
        let has_page = reliable && (!options.traps_counter || options.pace == Pace::Frozen);
        let page = has_page.then(SharedPage::new).transpose();
        let page = page.map_err(|error| WarpError::Clock { error })?;
        let baseline = pair(source);
        while clock(libc::CLOCK_MONOTONIC) < baseline.1 + FIRST_BASELINE_NS {}
        let (base_tsc, now) = pair(source);
        let mut offsets = Offsets([0; CLOCKS]);
        for id in crate::line::VIRTUAL_CLOCKS.into_iter().filter(|id| ![1, 6].contains(id)) {
            let ahead = clock(id as i32).wrapping_sub(clock(libc::CLOCK_MONOTONIC));
            offsets.0[id] = ahead.cast_signed();
        }
        // Coarse and alarm clocks have the offsets of the clocks of which they are variants.
        (offsets.0[5], offsets.0[8], offsets.0[9]) = (offsets.0[0], offsets.0[0], offsets.0[7]);
        if let Some(start) = options.start_ns {
            offsets.set_realtime(start.wrapping_sub(now.cast_signed()));
        }
        let line = Line { base_tsc, mult: 0, base_ns: now };
        let virtual_counter = Line { base_tsc: now, mult: 0, base_ns: base_tsc };
        let mut clock = VirtualClock {
            line,
            offsets,
            source,
            page,
            pace: options.pace,
            begin: now,
            virtual_counter,
            baseline,
            refine_at: now,
            jumps: 0,
        };
        clock.refine();
        Ok(clock)
    }

    /// Returns virtual `CLOCK_MONOTONIC`.
    pub(crate) fn now(&self) -> Ns {
        self.line.at(self.source.read())
    }

    pub(crate) fn passed(&self) -> Duration {
        self.since_begin(self.now())
    }

    pub(crate) fn since_begin(&self, at: Ns) -> Duration {
        Duration::from_nanos(at.saturating_sub(self.begin))
    }

    /// Returns the count that a program gets if reading the counter is trapped. Never goes back.
    pub(crate) fn virtual_counter(&self) -> u64 {
        self.virtual_counter.at(self.now())
    }

    /// Returns whether the clock jumps when every thread waits: always, except with `Pace::Times`.
    pub(crate) fn jumps_when_idle(&self) -> bool {
        !matches!(self.pace, Pace::Times(_))
    }

    /// Moves the clock to a later time.
    pub(crate) fn jump_to(&mut self, ns: Ns) {
        let tsc = self.source.read();
        if ns > self.line.at(tsc) {
            self.line = self.line.moved_to(tsc, ns);
            self.jumps += 1;
            self.publish();
        }
    }

    pub(crate) fn set_realtime(&mut self, ns: u64) {
        self.offsets.set_realtime(ns.wrapping_sub(self.now()).cast_signed());
        self.publish();
    }

    /// How many times as fast as real time the clock runs.
    fn factor(&self) -> f64 {
        match self.pace {
            Pace::Jump => 1.0,
            Pace::Frozen => 0.0,
            Pace::Times(factor) => factor,
        }
    }

    /// Returns how long it takes in real time until the clock shows `ns`; the longest time if only
    /// a jump brings it there.
    pub(crate) fn real_time_until(&self, ns: Ns) -> Duration {
        match ns.saturating_sub(self.now()) {
            0 => Duration::ZERO,
            distance => Duration::from_nanos((distance as f64 / self.factor()) as u64),
        }
    }

    /// Computes the counter's rate again, from a longer baseline, if that is due.
    pub(crate) fn refine(&mut self) {
        let now = clock(libc::CLOCK_MONOTONIC);
        if now < self.refine_at {
            return;
        }
        self.refine_at = now + (9 * (now - self.baseline.1)).clamp(1_000_000, 60_000_000_000);
        let (counts, ns) = pair(self.source);
        let (counts, ns) = (counts - self.baseline.0, ns - self.baseline.1);
        let mult = ONE * self.factor() * ns as f64 / counts.max(1) as f64;
        self.line = self.line.with_slope(self.source.read(), mult as u64);
        let mult = ONE * counts as f64 / ns.max(1) as f64;
        self.virtual_counter = self.virtual_counter.with_slope(self.now(), mult as u64);
        self.publish();
    }

    fn publish(&self) {
        if let Some(page) = &self.page {
            page.publish(&self.line, &self.offsets);
        }
    }
}

/// Reads the counter and the monotonic clock at one moment: the shortest of five attempts counts.
fn pair(source: Source) -> (u64, u64) {
    let read = |_| {
        let before = source.read();
        let ns = clock(libc::CLOCK_MONOTONIC);
        let took = source.read().saturating_sub(before);
        (took, before + took / 2, ns)
    };
    let best = (0..5).map(read).min();
    best.map_or((0, 0), |(_, counter, ns)| (counter, ns))
}

/// The counter is reliable where the kernel itself reads the time from it.
fn is_counter_reliable() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(path).is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_virtual_counter_is_monotonic() {
        let mut clock = VirtualClock::new(&Options::default()).unwrap();
        clock.jump_to(clock.now() + (1 << 52));
        let mut before = clock.virtual_counter();
        for _ in 0..10_000 {
            clock.refine();
            let now = clock.virtual_counter();
            assert!(now >= before);
            before = now;
        }
    }
}
