//! Permits that callers take without a lock, from the pool of a group.
//!
//! A lock guards a [`Group`](crate::bandwidth::Group). A word beside that lock holds a copy of the
//! group's pool, and a caller takes permits from the word with one compare-and-swap. A caller
//! takes the lock only when the group's state must change: a refill is due, a member must wait, or
//! the refill timer must be started.
//!
//! A limiter with many keys has no groups, only such a word for each key: its callers never wait.
//! The first caller after the end of a period refills the word ([`Permits::refill`]).
//!
//! # Guarantees
//!
//! - Callers take from the word only what is in the pool.
//! - A caller whose clock shows the next period takes nothing from the word, because the refill
//!   must come first.
//! - A caller takes nothing while members wait. A caller that is refused takes no lock either.
//!
//! # Ground rules
//!
//! - The word is *open* or *closed*. Only the holder of the group's lock opens and closes it, and
//!   uses the group only while the word is closed.
//! - A second word, `until`, is the time of the next refill. It is written only while the first
//!   word is closed.
//!
//! # A refill races with a caller
//!
//! A caller that has read the word before a refill cannot exchange it if the refill has set it to
//! another value: the caller tries again. If the refill has set the same value again, the exchange
//! succeeds, which is correct: the word is what the pool holds at that moment. It is also correct
//! to read the clock before a refill and to take permits after it; they count for the later period.

use crate::bandwidth::period::{pass_refills, refilled_at};
use crate::bandwidth::settings::Settings;
use crate::time::Ns;
use crate::word::{Ordering, Word};

/// The number of permits that callers can take without a lock, and the time of the next refill.
#[derive(Debug)]
pub struct Permits<W> {
    /// `left << 1 | OPEN`, or [`CLOSED`].
    word: W,
    /// When the next refill is due.
    until: W,
}

const CLOSED: u64 = 0;
const OPEN: u64 = 1;

/// Relaxed: the word publishes nothing but itself, and the lock orders accesses to the group.
const RELAXED: Ordering = Ordering::Relaxed;

/// The result of [`Permits::take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Take {
    /// The permits were taken.
    Taken,
    /// Too few permits are left until the next refill, or members wait for permits.
    Refused,
    /// The permit word cannot decide: the caller must take the group's lock and ask the group.
    AskGroup,
}

impl<W: Word> Permits<W> {
    /// Makes permits that are closed: until they are opened, every caller must ask the group.
    pub fn closed() -> Permits<W> {
        Permits { word: W::new(CLOSED), until: W::new(0) }
    }

    /// Makes the permits of one key of a limiter with many keys, which have no group. At `now`, all
    /// permits that the settings allow are available.
    pub fn full(settings: &Settings, now: Ns) -> Permits<W> {
        Permits::with(settings.most(), now.after(settings.period))
    }

    /// Makes permits without a group: `left` of them until the next refill, due at `until`.
    pub fn with(left: u64, until: Ns) -> Permits<W> {
        Permits { word: W::new(left << 1 | OPEN), until: W::new(until.0) }
    }

    /// Adds the quota of the periods that have passed until `now`, for permits without a group. The
    /// caller holds the lock that guards their refills. Returns the number of permits, and when the
    /// next refill is due.
    pub fn refill(&self, settings: &Settings, now: Ns) -> (u64, Ns) {
        let left = self.close().unwrap_or(0);
        let (left, until) = refilled(left, Ns(self.until.load(RELAXED)), settings, now);
        self.open(left, until);
        (left, until)
    }

    /// Returns the number of permits that can be taken at `now`, for permits without a group. Other
    /// callers can take some of them at the same time.
    pub fn available(&self, settings: &Settings, now: Ns) -> u64 {
        let until = Ns(self.until.load(RELAXED));
        refilled(self.word.load(RELAXED) >> 1, until, settings, now).0
    }

    /// Returns when `amount` permits can be taken, for permits without a group, if no caller takes
    /// any until then. The settings must allow `amount`.
    pub fn available_at(&self, settings: &Settings, amount: u64, now: Ns) -> Ns {
        let until = Ns(self.until.load(RELAXED));
        let (left, until) = refilled(self.word.load(RELAXED) >> 1, until, settings, now);
        let missing = i128::from(amount) - i128::from(left);
        refilled_at(missing, settings.quota, until, settings.period, now)
    }

    /// Takes `amount` permits, or none. Takes no lock and makes no system call.
    #[inline]
    pub fn take(&self, amount: u64, now: Ns) -> Take {
        // Acquire: pairs with the Release in `open`. A caller that reads a new `until` also sees
        // that the word was closed since the previous period, and takes no permits of that period.
        // (The model checkers cannot show this, because they perform stores in program order.) A
        // caller that takes zero asks whether members wait, which only the group knows.
        if now.0 >= self.until.load(Ordering::Acquire) || amount == 0 {
            return Take::AskGroup;
        }
        let mut word = self.word.load(RELAXED);
        while word != CLOSED {
            if amount > word >> 1 {
                return Take::Refused;
            }
            // The exchange can succeed although a new period has begun. That is correct: `now` is
            // before the end of the old period, so it is before the end of the new one, too.
            match self.word.compare_exchange(word, word - (amount << 1), RELAXED, RELAXED) {
                Ok(_) => return Take::Taken,
                Err(found) => word = found,
            }
        }
        Take::AskGroup
    }

    /// Opens `word`: callers can take `left` permits from it while their clock shows less than
    /// `until`. The thread that calls `open` holds the group's lock and has closed the word.
    pub(crate) fn open(&self, left: u64, until: Ns) {
        // Release: pairs with the Acquire in `take`, and publishes that the word was closed.
        self.until.store(until.0, Ordering::Release);
        self.word.store(left << 1 | OPEN, RELAXED);
    }

    /// Closes `word`, so that nothing can be taken from it. Returns the number of permits left in
    /// it; `None` if it was closed already. The caller holds the group's lock.
    pub(crate) fn close(&self) -> Option<u64> {
        let mut word = self.word.load(RELAXED);
        while word != CLOSED {
            match self.word.compare_exchange(word, CLOSED, RELAXED, RELAXED) {
                Ok(_) => return Some(word >> 1),
                Err(found) => word = found,
            }
        }
        None
    }
}

/// Returns how many permits are available at `now` if `left` are left from before the refill at
/// `until`, and when the refill after `now` is due. If a refill makes all permits available, a new
/// period begins at `now`, as it does when a key is used for the first time.
fn refilled(left: u64, mut until: Ns, settings: &Settings, now: Ns) -> (u64, Ns) {
    if now < until {
        return (left, until);
    }
    let periods = pass_refills(&mut until, settings.period, now);
    let left = left.saturating_add(periods.saturating_mul(settings.quota));
    if left < settings.most() {
        (left, until)
    } else {
        (settings.most(), now.after(settings.period))
    }
}
