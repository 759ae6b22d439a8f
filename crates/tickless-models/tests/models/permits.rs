//! P6: permits that are taken without a lock race each other, refills and those that wait.
//!
//! What was broken to see these fail: `take` that does not look at the clock
//! (`nothing_is_left_over_for_the_next_period`), `open` without `close` before it
//! (`taking_races_a_refill`), a word that shows the pool while somebody waits
//! (`nobody_overtakes_those_that_wait`), a plain store in place of the exchange (`takers_race`).

use super::Checked;
use super::checker::{Checker, Depth, explore};
use super::stage::CPU1;
use std::sync::Arc;
use tickless_core::bandwidth::{Grant, Group, Permits, Release, Settings, Take};
use tickless_core::platform::Lock;
use tickless_core::time::Ns;

/// Before and after the first refill.
const FIRST: Ns = Ns::from_ms(50);
const REFILL: Ns = Ns::from_ms(100);
const SECOND: Ns = Ns::from_ms(150);

const TOGETHER: Release = Release::TOGETHER;

struct Shared<C: Checker> {
    permits: Permits<C::Word>,
    group: C::Lock<Group>,
}

impl<C: Checker> Shared<C> {
    /// Open, with so many permits in each period.
    fn new(quota: u64, release: Release) -> Arc<Shared<C>> {
        let settings = Settings { quota, period: REFILL, extra: 0, slice: 1, release };
        let mut group = Group::new(settings, REFILL).expect("a group");
        let permits = Permits::closed();
        group.open(&permits);
        Arc::new(Shared { permits, group: C::Lock::new(group) })
    }

    /// What the host does under the lock.
    fn with<R>(&self, now: Ns, work: impl FnOnce(&mut Group) -> R) -> R {
        let mut group = self.group.lock();
        assert!(group.close(&self.permits), "open whenever nobody has the lock");
        group.refill(now);
        let done = work(&mut group);
        group.check().expect("in order");
        group.open(&self.permits);
        done
    }

    /// One permit, as the host's limiter takes it. Returns how many it took.
    fn acquire(&self, now: Ns) -> u64 {
        match self.permits.take(1, now) {
            Take::Taken => 1,
            Take::Refused => 0,
            Take::AskGroup => u64::from(self.with(now, |group| group.try_take(1)) == Ok(true)),
        }
    }

    /// Every permit that was taken has been charged, and no other.
    fn check(&self, taken: u64) {
        let mut group = self.group.lock();
        group.close(&self.permits);
        group.check().expect("in order");
        assert_eq!(group.counts().used, u128::from(taken));
    }
}

/// Two threads that take permits, and how many each got.
fn race<C: Checker>(shared: &Arc<Shared<C>>, [one, other]: [&'static [Ns]; 2]) -> u64 {
    let taken = Arc::new(C::Lock::new(0));
    let (theirs, sum) = (Arc::clone(shared), Arc::clone(&taken));
    let thread = C::spawn(CPU1, move || {
        let got: u64 = other.iter().map(|&now| theirs.acquire(now)).sum();
        *sum.lock() += got;
    });
    let got: u64 = one.iter().map(|&now| shared.acquire(now)).sum();
    *taken.lock() += got;
    C::join(thread);
    let taken = *taken.lock();
    shared.check(taken);
    taken
}

fn run(name: &str, body: impl Fn() + Send + Sync + 'static) {
    explore::<Checked>(name, Depth { preemptions: 3, ..Depth::usual() }, body);
}

/// Goal: of four that want one of three permits, three get it.
#[test]
fn takers_race() {
    run("takers race", || {
        assert_eq!(
            race(&Shared::<Checked>::new(3, TOGETHER), [&[FIRST, FIRST], &[FIRST, FIRST]]),
            3
        );
    });
}

/// Goal: whatever is taken before, during and after a refill is accounted for.
#[test]
fn taking_races_a_refill() {
    run("taking races a refill", || {
        let taken =
            race(&Shared::<Checked>::new(2, TOGETHER), [&[FIRST, FIRST], &[SECOND, SECOND]]);
        assert!((2..=4).contains(&taken), "two in each period, or all in the second: {taken}");
    });
}

/// Goal: what is in the pool at the end of a period is not taken beside what the next one brings,
/// whoever refills.
#[test]
fn nothing_is_left_over_for_the_next_period() {
    run("nothing is left over", || {
        let shared = Shared::<Checked>::new(2, TOGETHER);
        let theirs = Arc::clone(&shared);
        let timer = Checked::spawn(CPU1, move || theirs.with(SECOND, |_| ()));
        let before = shared.acquire(SECOND) + shared.acquire(SECOND);
        Checked::join(timer);
        let taken = before + shared.acquire(SECOND) + shared.acquire(SECOND);
        assert_eq!(taken, 2);
        shared.check(taken);
    });
}

/// Goal: nobody takes what somebody waits for, though it is there and only its turn has not come.
#[test]
fn nobody_overtakes_those_that_wait() {
    run("nobody overtakes", || {
        let shared = Shared::<Checked>::new(4, Release { batch: 1, gap: REFILL.to_duration() });
        for _ in 0..4 {
            assert_eq!(shared.acquire(FIRST), 1);
        }
        shared.with(FIRST, |group| {
            for _ in 0..2 {
                let id = group.join();
                assert_eq!(group.ask(id, 2, FIRST), Ok(Grant::Wait));
            }
        });
        let theirs = Arc::clone(&shared);
        // One is let go; two permits are left, for the other one.
        let timer = Checked::spawn(CPU1, move || {
            theirs.with(SECOND, |group| assert!(group.pop_released(SECOND).is_some()));
        });
        assert_eq!(shared.acquire(SECOND), 0);
        Checked::join(timer);
        assert_eq!(shared.acquire(SECOND), 0);
        shared.check(4);
    });
}
