//! When a driver thread wakes for a deadline. Either the kernel wakes it at the deadline, and so a
//! little late. Or it wakes some time earlier (the *margin*), and spins until the deadline.
//!
//! A learned margin is a high quantile of how late the kernel's recent wakeups were. A driver with
//! a learned margin has an account of CPU time: a share of the time is added as it passes, and
//! spinning is subtracted. While the account has less than the margin, the driver sleeps until the
//! deadline.

use core::time::Duration;
use tickless_core::time::Ns;

/// How drivers wake for a deadline; see `Builder::wakeup`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub enum Wakeup {
    /// The kernel wakes the driver at the deadline. Timers are late by the time that waking a
    /// thread takes: 10 to 60 µs on most machines. Waiting costs no CPU time.
    #[default]
    Sleep,
    /// The driver wakes this long before the deadline, and spins until then. Timers are late by
    /// about a microsecond. Each wakeup costs up to the whole margin in CPU time.
    SpinBefore(Duration),
    /// The driver wakes before the deadline and spins, with a margin that it learns: what 99 in 100
    /// of its recent wakeups needed, at most 1 ms. While that would take more CPU time than
    /// `cpu_share` allows, the driver sleeps until the deadline, as with [`Sleep`](Wakeup::Sleep).
    Auto {
        /// The share of one CPU's time, for each driver: `0.05` is 5 %. Limited to 0 to 1.
        cpu_share: f64,
    },
}

const MARGIN_FIRST: Ns = Ns::from_us(60);
const MARGIN_LEAST: Ns = Ns::from_us(2);
const MARGIN_MOST: Ns = Ns::from_ms(1);
/// The most CPU time that a driver can save up while it does not spin.
const SAVED_MOST: Ns = Ns::from_ms(1);
/// A wakeup that is late by more than the margin raises the margin by a 16th; any other wakeup
/// lowers it by a 99th of that step. So the margin settles where one wakeup in 100 is late by more.
const RAISED_BY: u64 = 16;

/// The margin of one driver, and the CPU time that it is allowed to spin.
#[derive(Debug)]
pub struct Waking {
    wakeup: Wakeup,
    /// How long before the deadline the driver wakes, if its account has as much CPU time saved.
    margin: Ns,
    account: Account,
}

#[derive(Debug)]
struct Account {
    share: f64,
    saved_ns: f64,
    /// The time when the driver's `share` of CPU time was last added to `saved_ns`.
    paid: Ns,
}

impl Account {
    /// Adds the driver's share of the time since the last call to the account.
    fn pay_in(&mut self, now: Ns) {
        let earned_ns = now.since(self.paid).0 as f64 * self.share;
        self.saved_ns = (self.saved_ns + earned_ns).min(SAVED_MOST.0 as f64);
        self.paid = self.paid.max(now);
    }
}

impl Waking {
    pub fn new(wakeup: Wakeup, now: Ns) -> Waking {
        let (margin, share) = match wakeup {
            Wakeup::Sleep => (Ns::ZERO, 0.0),
            Wakeup::SpinBefore(margin) => (Ns::from_duration(margin), 1.0),
            // NaN is not greater than zero, so it counts as no share.
            Wakeup::Auto { cpu_share } if cpu_share > 0.0 => (MARGIN_FIRST, cpu_share.min(1.0)),
            Wakeup::Auto { .. } => (MARGIN_FIRST, 0.0),
        };
        Waking { wakeup, margin, account: Account { share, saved_ns: 0.0, paid: now } }
    }

    pub fn spins(&self) -> bool {
        self.wakeup != Wakeup::Sleep
    }

    /// Returns how long before its next deadline the driver should wake.
    pub fn margin(&mut self, now: Ns) -> Ns {
        if let Wakeup::Auto { .. } = self.wakeup {
            self.account.pay_in(now);
            if self.account.saved_ns < self.margin.0 as f64 {
                return Ns::ZERO;
            }
        }
        self.margin
    }

    /// Adjusts a learned margin after a wakeup. `asked` is the time for which the driver had asked
    /// the kernel to wake it, and `woke` the time at which it woke.
    pub fn note_woken(&mut self, asked: Ns, woke: Ns) {
        let Wakeup::Auto { .. } = self.wakeup else { return };
        let step = (self.margin.0 / RAISED_BY).max(99);
        let margin = if woke.since(asked) > self.margin {
            self.margin.after(Ns(step))
        } else {
            self.margin.since(Ns(step / 99))
        };
        self.margin = margin.clamp(MARGIN_LEAST, MARGIN_MOST);
    }

    /// Spins until the deadline, or until `is_called` returns `true`. Returns how long it spun.
    pub fn spin(
        &mut self,
        deadline: Ns,
        mut now: impl FnMut() -> Ns,
        mut is_called: impl FnMut() -> bool,
    ) -> Ns {
        let begun = now();
        let mut ended = begun;
        while ended < deadline && !is_called() {
            core::hint::spin_loop();
            ended = now();
        }
        // Charge spinning only until the deadline: if the loop ended later, the thread did not spin
        // all the time, but had lost its CPU.
        let spun = ended.min(deadline).since(begun);
        self.account.saved_ns -= spun.0 as f64;
        spun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const READING: u64 = 500;

    /// Simulates a driver with a deadline every millisecond, whose wakeup in each round is late by
    /// `late(round)` ns. Returns how late the driver was each time, and how long it spun in all.
    fn simulate(waking: &mut Waking, late: impl Fn(u64) -> u64, rounds: u64) -> (Vec<u64>, u64) {
        let (mut ready_late, mut spun) = (Vec::new(), 0);
        let mut now = 0;
        for round in 1..=rounds {
            let deadline = Ns(round * MS);
            let margin = waking.margin(Ns(now));
            let asked = deadline.since(margin);
            let woke = asked.after(Ns(late(round)));
            waking.note_woken(asked, woke);
            let mut clock = woke.0;
            if margin != Ns::ZERO {
                let tick = || {
                    clock += READING;
                    Ns(clock)
                };
                spun += waking.spin(deadline, tick, || false).0;
            }
            assert!(clock >= deadline.0, "the driver is not early");
            ready_late.push(clock - deadline.0);
            now = clock;
        }
        (ready_late, spun)
    }

    /// Method: wakeups that are late by 0 to 100 us, evenly distributed; then by 0 to 500 us; then
    /// all by a second; then all on time.
    #[test]
    #[cfg_attr(miri, ignore = "40,000 rounds of arithmetic take Miri minutes")]
    fn the_margin_is_learned() {
        let mut waking = Waking::new(Wakeup::Auto { cpu_share: 1.0 }, Ns::ZERO);
        let even = |round: u64| round * 7_919 % 100 * 1_000;
        simulate(&mut waking, even, 5_000);
        assert!((90_000..=110_000).contains(&waking.margin.0), "{:?}", waking.margin);
        simulate(&mut waking, |round| 5 * even(round), 5_000);
        assert!((450_000..=550_000).contains(&waking.margin.0), "{:?}", waking.margin);
        simulate(&mut waking, |_| 1_000_000_000, 100);
        assert_eq!(waking.margin, MARGIN_MOST, "the upper limit");
        simulate(&mut waking, |_| 0, 30_000);
        assert_eq!(waking.margin, MARGIN_LEAST, "the lower limit");
    }

    /// Method: shares from 0 to 1 and invalid ones. There is one deadline in each millisecond, and
    /// the wakeup for it is late by up to 50 us.
    #[test]
    #[cfg_attr(miri, ignore = "90,000 rounds of arithmetic take Miri minutes")]
    fn the_share_is_kept() {
        let late = |round: u64| round * 7_919 % 50 * 1_000;
        for cpu_share in [0.0, 0.001, 0.01, 0.02, 0.04, 1.0, 5.0, -1.0, f64::NAN] {
            let mut waking = Waking::new(Wakeup::Auto { cpu_share }, Ns::ZERO);
            let (late, spun) = simulate(&mut waking, late, 10_000);
            let all = 10_000.0 * MS as f64;
            let share = if cpu_share > 0.0 { cpu_share.min(1.0) } else { 0.0 };
            let allowed = share * all + SAVED_MOST.0 as f64;
            assert!(spun as f64 <= allowed, "{cpu_share}: {spun}");
            // A driver whose share does not cover all deadlines still uses a tenth of that share.
            if (0.001..0.03).contains(&cpu_share) {
                assert!(spun as f64 >= 0.1 * allowed, "{cpu_share}: {spun}");
            }
            let exact = late.iter().filter(|&&ns| ns <= READING).count();
            match cpu_share {
                1.0.. => assert!(exact >= 9_500, "{exact}"),
                0.001.. => assert!(exact >= 100, "{cpu_share}: {exact}"),
                _ => assert_eq!(spun, 0),
            }
        }
    }

    #[test]
    fn a_call_ends_the_spinning() {
        let mut waking = Waking::new(Wakeup::SpinBefore(Duration::from_secs(1)), Ns::ZERO);
        let (mut clock, mut checks) = (0, 0);
        let tick = || {
            clock += 10;
            Ns(clock)
        };
        let called = || {
            checks += 1;
            checks > 5
        };
        assert_eq!(waking.spin(Ns(1_000_000), tick, called), Ns(50));
    }
}
