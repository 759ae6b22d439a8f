//! How a driver comes to be awake at its deadline: the kernel wakes it then, which takes until some
//! time after; or it gets up before, and spins until then.
//!
//! What is decided here is how long before. A margin that is learned is a high quantile of how late
//! the kernel was lately; and what is spun is taken from an account, into which the driver's share
//! of a CPU is paid as time passes. While the account does not cover the margin, the driver sleeps.
//!
//! No clock is read here but the one that is passed in, and none is changed: a timer that is due is
//! due by the base's own look at the clock, so that no spinning makes it early.

use core::time::Duration;
use tickless_core::time::Ns;

/// How drivers get up for a deadline; see `Builder::wakeup`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub enum Wakeup {
    /// The kernel wakes the driver at the deadline. Timers are late by what waking a thread takes:
    /// 10 to 60 µs on most machines, more where CPUs fall into deep idle states. No CPU time is
    /// spent on waiting.
    #[default]
    Sleep,
    /// The driver has itself woken so long before the deadline, and spins until then. Where the
    /// kernel wakes it within that time, timers are late by about a microsecond. Each wakeup costs
    /// up to the whole margin in CPU time, and a CPU that spins does not idle.
    SpinBefore(Duration),
    /// The same with a margin that each driver learns: what 99 in 100 of its wakeups needed lately,
    /// at most 1 ms. It spins for no more than this share of one CPU, 0 to 1, and 1 ms; where that
    /// is not enough for every deadline, it sleeps until some of them as with
    /// [`Sleep`](Wakeup::Sleep).
    Auto {
        /// Of one CPU's time, for each driver: `0.05` is 5 %. Below 0, or no number, is 0; above
        /// 1 is 1.
        cpu_share: f64,
    },
}

/// What a driver begins with, before it has learned anything.
const MARGIN_FIRST: Ns = Ns::from_us(60);
const MARGIN_LEAST: Ns = Ns::from_us(2);
const MARGIN_MOST: Ns = Ns::from_ms(1);
/// A driver that has not spun for long may spin so much at once beyond its share.
const SAVED_MOST: Ns = Ns::from_ms(1);
/// The margin is raised by this part of it when it was too short, and lowered by a 99th of that
/// when it was not: so it comes to rest where one wakeup in 100 takes longer.
const RAISED_BY: u64 = 16;

/// One driver's way of waking up.
#[derive(Debug)]
pub struct Waking {
    wakeup: Wakeup,
    /// How long before the deadline the driver gets up, unless it cannot pay for that.
    margin: Ns,
    account: Account,
}

/// CPU time that may be spun away.
#[derive(Debug)]
struct Account {
    share: f64,
    saved_ns: f64,
    paid: Ns,
}

impl Account {
    fn pay_in(&mut self, now: Ns) {
        let earned_ns = now.since(self.paid).0 as f64 * self.share;
        self.saved_ns = (self.saved_ns + earned_ns).min(SAVED_MOST.0 as f64);
        self.paid = self.paid.max(now);
    }
}

impl Waking {
    /// A driver that begins now.
    pub fn new(wakeup: Wakeup, now: Ns) -> Waking {
        let (margin, share) = match wakeup {
            Wakeup::Sleep => (Ns::ZERO, 0.0),
            Wakeup::SpinBefore(margin) => (Ns::from_duration(margin), 1.0),
            // No number is not above zero either.
            Wakeup::Auto { cpu_share } if cpu_share > 0.0 => (MARGIN_FIRST, cpu_share.min(1.0)),
            Wakeup::Auto { .. } => (MARGIN_FIRST, 0.0),
        };
        Waking { wakeup, margin, account: Account { share, saved_ns: 0.0, paid: now } }
    }

    /// Does it ever spin?
    pub fn spins(&self) -> bool {
        self.wakeup != Wakeup::Sleep
    }

    /// How long before its next deadline the driver gets up; zero if it just sleeps.
    pub fn margin(&mut self, now: Ns) -> Ns {
        if let Wakeup::Auto { .. } = self.wakeup {
            self.account.pay_in(now);
            if self.account.saved_ns < self.margin.0 as f64 {
                return Ns::ZERO;
            }
        }
        self.margin
    }

    /// The kernel was asked to wake the driver at `asked`, and it was awake at `woke`.
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

    /// Spins until the deadline, or until told to leave off. Returns for how long.
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
        // Past the deadline somebody else had the CPU.
        let spun = ended.min(deadline).since(begun);
        self.account.saved_ns -= spun.0 as f64;
        spun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// What a look at the clock takes.
    const LOOK: u64 = 500;

    /// A kernel that wakes its driver as late as it is told, and a driver that has a deadline every
    /// millisecond. Returns how late the driver was ready each time, and for how long it spun.
    fn driven(waking: &mut Waking, late: impl Fn(u64) -> u64, rounds: u64) -> (Vec<u64>, u64) {
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
                    clock += LOOK;
                    Ns(clock)
                };
                spun += waking.spin(deadline, tick, || false).0;
            }
            assert!(clock >= deadline.0, "nobody is early");
            ready_late.push(clock - deadline.0);
            now = clock;
        }
        (ready_late, spun)
    }

    #[test]
    fn a_margin_makes_up_for_the_kernel() {
        let mut waking = Waking::new(Wakeup::SpinBefore(Duration::from_micros(80)), Ns::ZERO);
        let (late, spun) = driven(&mut waking, |round| round % 80 * 1_000, 1_000);
        assert!(late.iter().all(|&ns| ns <= LOOK), "{:?}", late.iter().max());
        assert!(spun > 0);
        let (late, spun) = driven(&mut Waking::new(Wakeup::Sleep, Ns::ZERO), |_| 50_000, 10);
        assert_eq!((late, spun), (vec![50_000; 10], 0));
    }

    /// Goal: what is learned is what 99 in 100 wakeups need. Method: a kernel that is late by up
    /// to 100 us, evenly; and one that becomes five times as slow, and fast again.
    #[test]
    fn the_margin_is_learned() {
        let mut waking = Waking::new(Wakeup::Auto { cpu_share: 1.0 }, Ns::ZERO);
        let even = |round: u64| round * 7_919 % 100 * 1_000;
        driven(&mut waking, even, 5_000);
        assert!((90_000..=110_000).contains(&waking.margin.0), "{:?}", waking.margin);
        driven(&mut waking, |round| 5 * even(round), 5_000);
        assert!((450_000..=550_000).contains(&waking.margin.0), "{:?}", waking.margin);
        driven(&mut waking, |_| 1_000_000_000, 100);
        assert_eq!(waking.margin, MARGIN_MOST, "there is a limit");
        driven(&mut waking, |_| 0, 30_000);
        assert_eq!(waking.margin, MARGIN_LEAST, "and another one");
    }

    /// Goal: a driver spins for no more than its share. Method: all shares, with a kernel that is
    /// late by up to 50 us of a millisecond.
    #[test]
    #[cfg_attr(miri, ignore = "90,000 rounds of arithmetic take Miri minutes")]
    fn the_share_is_kept() {
        let late = |round: u64| round * 7_919 % 50 * 1_000;
        for cpu_share in [0.0, 0.001, 0.01, 0.02, 0.04, 1.0, 5.0, -1.0, f64::NAN] {
            let mut waking = Waking::new(Wakeup::Auto { cpu_share }, Ns::ZERO);
            let (late, spun) = driven(&mut waking, late, 10_000);
            let all = 10_000.0 * MS as f64;
            let share = if cpu_share > 0.0 { cpu_share.min(1.0) } else { 0.0 };
            let allowed = share * all + SAVED_MOST.0 as f64;
            assert!(spun as f64 <= allowed, "{cpu_share}: {spun}");
            // A tenth of what it might is the least that a driver with work to do makes use of.
            if (0.001..0.03).contains(&cpu_share) {
                assert!(spun as f64 >= 0.1 * allowed, "{cpu_share}: {spun}");
            }
            let exact = late.iter().filter(|&&ns| ns <= LOOK).count();
            match cpu_share {
                1.0.. => assert!(exact >= 9_500, "{exact}"),
                0.001.. => assert!(exact >= 100, "{cpu_share}: {exact}"),
                _ => assert_eq!(spun, 0),
            }
        }
    }

    #[test]
    fn who_is_called_stops_spinning() {
        let mut waking = Waking::new(Wakeup::SpinBefore(Duration::from_secs(1)), Ns::ZERO);
        let (mut clock, mut looks) = (0, 0);
        let tick = || {
            clock += 10;
            Ns(clock)
        };
        let called = || {
            looks += 1;
            looks > 5
        };
        assert_eq!(waking.spin(Ns(1_000_000), tick, called), Ns(50));
    }
}
