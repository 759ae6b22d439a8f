//! Bandwidth groups account for every unit, and no member waits forever (P6).

use crate::support::random::{Rng, with_seeds};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tickless_core::bandwidth::{
    AMOUNT_MAX, AskError, BandwidthError, Grant, Group, MemberId, PERIOD_LIMIT, PERIOD_MIN,
    Permits, Release, Settings, Take,
};
use tickless_core::time::Ns;

const MS: u64 = 1_000_000;

fn settings(quota: u64, slice: u64) -> Settings {
    Settings { quota, period: Ns::from_ms(100), extra: 0, slice, release: Release::TOGETHER }
}

fn group(settings: Settings) -> Group {
    Group::new(settings, Ns::from_ms(100)).unwrap()
}

/// The naive model of a group: it moves units one at a time and refills period by period.
struct Twin {
    settings: Settings,
    pool: i128,
    /// Balances by member number. Members are numbered in the order in which they joined.
    members: BTreeMap<usize, i128>,
    /// The waiting members, the amounts that they asked for and when, longest waiting first.
    line: Vec<(usize, u64, u64)>,
    waited: u64,
    next: u64,
    batch: u32,
    batch_at: u64,
    expired: i128,
}

impl Twin {
    fn new(settings: Settings, first: u64) -> Twin {
        Twin {
            settings,
            pool: i128::from(settings.quota),
            members: BTreeMap::new(),
            line: Vec::new(),
            waited: 0,
            next: first,
            batch: settings.release.batch,
            batch_at: 0,
            expired: 0,
        }
    }

    fn held(&self) -> i128 {
        self.pool + self.members.values().sum::<i128>()
    }

    fn ask(&mut self, member: usize, want: u64, now: u64) -> bool {
        if self.line.iter().any(|waits| waits.0 == member) {
            return false;
        }
        if self.members[&member] >= i128::from(want) {
            return true;
        }
        if !self.line.is_empty() || !self.lend(member, want) {
            self.line.push((member, want, now));
            return false;
        }
        true
    }

    fn expire_excess(&mut self) {
        let capacity = i128::from(self.settings.most());
        while self.held() > capacity && self.pool > 0 {
            self.pool -= 1;
            self.expired += 1;
        }
    }

    /// Moves units from the pool to the member, one at a time. Returns whether it now has `want`.
    fn lend(&mut self, member: usize, want: u64) -> bool {
        let fill = i128::from(want.max(self.settings.slice));
        let balance = self.members.get_mut(&member).unwrap();
        while *balance < fill && self.pool > 0 {
            *balance += 1;
            self.pool -= 1;
        }
        *balance >= i128::from(want)
    }

    fn refill(&mut self, now: u64) {
        if now < self.next {
            return;
        }
        while self.next <= now {
            self.next += self.settings.period.0;
            let quota = i128::from(self.settings.quota);
            let room = (quota + i128::from(self.settings.extra) - self.held()).max(0);
            self.pool += room.min(quota);
            self.expired += quota - room.min(quota);
        }
        self.batch = self.settings.release.batch;
    }

    fn release(&mut self, now: u64) -> Option<usize> {
        if self.batch == 0 && now >= self.batch_at {
            self.batch = self.settings.release.batch;
        }
        let &(member, want, asked) = self.line.first()?;
        if self.batch == 0 || !self.lend(member, want) {
            return None;
        }
        self.line.remove(0);
        self.waited += now.saturating_sub(asked);
        self.batch -= 1;
        if self.batch == 0 {
            self.batch_at = now + self.settings.release.gap.as_nanos() as u64;
        }
        Some(member)
    }
}

/// A group and its twin, with the random history that both run.
struct Pair {
    random: Rng,
    group: Group,
    permits: Permits<AtomicU64>,
    twin: Twin,
    members: Vec<(MemberId, usize)>,
    joined: usize,
    now: u64,
    /// The upper bound of a clock step. Above the period, refills are mostly late.
    pace: u64,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut random = Rng::new(seed);
        let quota = 1 + random.below(300);
        let batch = 1 + random.below(4) as u32;
        let settings = Settings {
            quota,
            period: Ns::from_us(100 + random.below(900)),
            extra: random.pick(&[0, 0, 1, 200]),
            slice: 1 + random.below(quota),
            release: Release { batch, gap: Duration::from_micros(random.below(300)) },
        };
        let now = random.below(1 << 40);
        let first = now + random.below(settings.period.0);
        let group = Group::new(settings, Ns(first)).unwrap();
        let twin = Twin::new(settings, first);
        let pace = settings.period.0 * random.pick(&[1, 1, 9]);
        Pair {
            random,
            group,
            permits: Permits::closed(),
            twin,
            members: Vec::new(),
            joined: 0,
            now,
            pace,
        }
    }

    fn balance(&mut self, member: usize) -> &mut i128 {
        self.twin.members.get_mut(&member).unwrap()
    }

    /// Performs one random operation of a random member. Does nothing in an empty group.
    fn member_step(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let place = self.random.below(self.members.len() as u64) as usize;
        let (id, member) = self.members[place];
        let Settings { quota, extra, .. } = *self.group.settings();
        match self.random.below(9) {
            0 => {
                self.members.swap_remove(place);
                self.group.leave(id);
                assert_eq!(self.group.ask(id, 1, Ns(self.now)), Err(AskError::Left));
                self.twin.pool += self.twin.members.remove(&member).unwrap();
                self.twin.expire_excess();
                self.twin.line.retain(|waits| waits.0 != member);
            }
            1 => {
                let keep = self.random.below(5);
                self.group.rest(id, keep);
                let back = (*self.balance(member) - i128::from(keep)).max(0);
                *self.balance(member) -= back;
                self.twin.pool += back;
                self.twin.expire_excess();
            }
            2..5 => {
                let most = self.random.pick(&[2, 20, 2 * quota]);
                let used = self.random.below(most);
                self.group.charge(id, used);
                *self.balance(member) -= i128::from(used);
            }
            5 => {
                let unused = self.random.below(quota).min(self.group.counts().used as u64);
                // A waiting member has used all that it charged.
                if !self.twin.line.iter().any(|waits| waits.0 == member) {
                    self.group.refund(id, unused);
                    *self.balance(member) += i128::from(unused);
                    self.twin.expire_excess();
                }
            }
            _ => {
                let most = self.random.pick(&[1, 1, quota + extra]);
                let want = 1 + self.random.below(most);
                let runs = matches!(self.group.ask(id, want, Ns(self.now)), Ok(Grant::Run(_)));
                assert_eq!(runs, self.twin.ask(member, want, self.now));
            }
        }
    }

    /// Takes permits without the group's lock, with clocks that may be in the next period already.
    fn open_step(&mut self) {
        let Settings { quota, period, .. } = *self.group.settings();
        self.group.open(&self.permits);
        for _ in 0..self.random.below(6) {
            let amount = self.random.below(quota + 2);
            let now = self.now + self.random.pick(&[0, 0, 0, period.0]);
            let is_there = self.twin.line.is_empty() && self.twin.pool >= i128::from(amount);
            let expected = match is_there {
                _ if now >= self.twin.next || amount == 0 => Take::AskGroup,
                true => Take::Taken,
                false => Take::Refused,
            };
            assert_eq!(self.permits.take(amount, Ns(now)), expected);
            self.twin.pool -= if expected == Take::Taken { i128::from(amount) } else { 0 };
        }
        assert!(self.group.close(&self.permits));
        assert_eq!(self.permits.take(1, Ns(self.now)), Take::AskGroup);
    }

    fn step(&mut self) {
        let Settings { quota, period, .. } = *self.group.settings();
        match self.random.below(15) {
            0 if self.members.len() < 12 => {
                self.members.push((self.group.join(), self.joined));
                self.twin.members.insert(self.joined, 0);
                self.joined += 1;
            }
            1 => {
                let amount = self.random.below(quota + 1);
                let takes = self.twin.line.is_empty() && self.twin.pool >= i128::from(amount);
                assert_eq!(self.group.try_take(amount), Ok(takes));
                self.twin.pool -= if takes { i128::from(amount) } else { 0 };
            }
            2 | 3 => {
                // The clock sometimes steps back, or far ahead.
                match self.random.below(40) {
                    0 => self.now -= self.random.below(self.now.min(1 << 30)),
                    1 => self.now += self.random.below(100 * period.0),
                    _ => self.now += self.random.below(self.pace),
                }
                self.group.refill(Ns(self.now));
                self.twin.refill(self.now);
            }
            4 | 5 => self.open_step(),
            _ => self.member_step(),
        }
    }

    /// Releases every member that may run, and compares the group with its twin.
    fn settle(&mut self) {
        let (group, twin, now) = (&mut self.group, &mut self.twin, self.now);
        while let Some(id) = group.pop_released(Ns(now)) {
            let member = self.members.iter().find(|member| member.0 == id).unwrap().1;
            assert_eq!(twin.release(now), Some(member));
        }
        assert_eq!(twin.release(now), None);
        group.check().unwrap();
        assert_eq!((group.pool(), group.held()), (twin.pool, twin.held()));
        assert_eq!(group.waiting(), twin.line.len());
        assert_eq!(group.next_refill(), Ns(twin.next));
        let counts = group.counts();
        assert_eq!(counts.expired as i128, twin.expired);
        assert_eq!(counts.waited, Duration::from_nanos(twin.waited));
        assert!(counts.throttled - counts.released >= group.waiting() as u64);
        if let Some(at) = group.next_release() {
            assert!(at > Ns(now), "every member that may run has been released");
        }
    }
}

/// Goal: after every step of any history, on any clock, refilled = used + expired + held, the twin
/// has the same balances, and the group releases the member that has waited longest (P6).
#[test]
fn histories_account_for_every_unit() {
    with_seeds(if cfg!(miri) { 4 } else { 400 }, |seed| {
        let mut pair = Pair::new(seed);
        for _ in 0..if cfg!(miri) { 60 } else { 600 } {
            pair.step();
            pair.settle();
        }
    });
}

/// Goal: a late refill adds each period's quota, and missed periods count unless it was idle.
#[test]
fn late_refills_are_counted() {
    let period = 100 * MS;
    let mut group = group(settings(50, 1));
    assert_eq!(group.refill(Ns(600 * period)), 600);
    assert_eq!(group.counts().missed, 0, "an idle group misses no period");
    group.try_take(20).unwrap();
    assert_eq!(group.refill(Ns(1_000 * period + 1)), 400);
    assert_eq!((group.counts().missed, group.next_refill()), (399, Ns(1_001 * period)));
    assert_eq!((group.held(), group.refill(Ns(1_001 * period - 1))), (50, 0));
}

/// Goal: settings and requests that cannot work are refused, each with its reason.
#[test]
fn invalid_settings_and_requests_are_refused() {
    let good = settings(50 * MS, 5 * MS);
    let with = |change: fn(&mut Settings)| {
        let mut settings = good;
        change(&mut settings);
        Group::new(settings, Ns::ZERO).err()
    };
    assert_eq!(with(|_| ()), None);
    assert_eq!(with(|s| s.quota = 0), Some(BandwidthError::QuotaZero));
    assert_eq!(with(|s| s.slice = 0), Some(BandwidthError::SliceZero));
    assert_eq!(with(|s| s.release.batch = 0), Some(BandwidthError::BatchZero));
    let short = Ns(PERIOD_MIN.0 - 1);
    assert_eq!(with(|s| s.period = Ns::ZERO), Some(BandwidthError::PeriodTooShort(Duration::ZERO)));
    assert_eq!(
        with(|s| s.period.0 = PERIOD_MIN.0 - 1),
        Some(BandwidthError::PeriodTooShort(short.to_duration()))
    );
    let long = PERIOD_LIMIT.after(Ns(1));
    assert_eq!(
        with(|s| s.period.0 = PERIOD_LIMIT.0 + 1),
        Some(BandwidthError::PeriodTooLong(long.to_duration()))
    );
    let below = BandwidthError::QuotaBelowSlice { quota: 4 * MS, slice: 5 * MS };
    assert_eq!(with(|s| s.quota = 4_000_000), Some(below));
    assert_eq!(with(|s| s.extra = AMOUNT_MAX), Some(BandwidthError::TooMuch));
    assert_eq!(with(|s| s.extra = u64::MAX), Some(BandwidthError::TooMuch));
    let above = BandwidthError::QuotaAboveMachine { quota: 201 * MS, capacity: 200 * MS };
    assert_eq!(settings(200 * MS, 1).check_cpu_time(2), Ok(()));
    assert_eq!(settings(201 * MS, 1).check_cpu_time(2), Err(above));
    assert!(above.to_string().contains("never throttles"));
    let mut group = group(Settings { extra: 7, ..settings(100, 10) });
    let member = group.join();
    let never = Err(AskError::NeverEnough { most: 107 });
    assert_eq!(group.ask(member, 108, Ns::ZERO), never);
    assert_eq!(group.try_take(108), Err(AskError::NeverEnough { most: 107 }));
    assert_eq!(group.ask(member, 107, Ns::ZERO), Ok(Grant::Wait), "after a refill");
    group.refill(Ns::from_ms(100));
    assert_eq!(group.pop_released(Ns::from_ms(100)), Some(member));
}
