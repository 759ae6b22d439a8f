//! A rate limit for requests: the library's permits, over the words of the simulated machine.

use super::words::Line;
use tickless_core::bandwidth::{Permits, Release, Settings, Take};
use tickless_core::platform::Lock;
use tickless_core::time::Ns;
use tickless_machine::platform::{self, SimLock, SimWord};

/// How many limiters the requests of the server share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Limits {
    #[default]
    None,
    /// One limiter for all CPUs: the limit is exact, and the limiter's word moves between CPUs.
    One,
    /// One limiter for each CPU, with a share of the limit that no other CPU can use.
    EachCpu,
}

impl Limits {
    pub fn limiters(self, cpus: u16) -> Vec<Line<Limiter>> {
        let count = match self {
            Limits::None => 0,
            Limits::One => 1,
            Limits::EachCpu => cpus,
        };
        (0..count).map(|_| Line(Limiter::new())).collect()
    }
}

/// A limiter as the library has one for each key of a `KeyedLimiter`. Its quota is never used up,
/// so only the cost of taking permits is simulated.
pub struct Limiter {
    permits: Permits<SimWord>,
    /// Guards the refills.
    refills: SimLock<()>,
    settings: Settings,
}

impl Limiter {
    fn new() -> Limiter {
        let settings = Settings {
            quota: 1 << 40,
            period: Ns::from_us(100),
            extra: 0,
            slice: 1,
            release: Release::TOGETHER,
        };
        let permits = Permits::full(&settings, Ns::ZERO);
        Limiter { permits, refills: SimLock::new(()), settings }
    }

    /// Takes a permit. The first caller after the end of a period refills the limiter.
    pub fn take(&self) {
        let now = platform::now();
        while self.permits.take(1, now) == Take::AskGroup {
            let _lock = self.refills.lock();
            self.permits.refill(&self.settings, now);
        }
    }
}
