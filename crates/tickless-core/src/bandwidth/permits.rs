//! Permits that are taken without a lock while they last.
//!
//! A [`Group`](crate::bandwidth::Group) is guarded by a lock. What its pool holds stands in one
//! word beside
//! that lock, and whoever wants permits takes them out of the word with one compare-and-swap. The
//! group is only asked when its state has to change: a refill is due, somebody has to wait, or the
//! refill timer has to be started.
//!
//! A key of many that are limited alike has nothing else: nobody waits for it, so it needs no
//! group, and its refills are made up for by whoever asks ([`Permits::refill`]).
//!
//! # Guarantees
//!
//! - What is taken from the word is in the pool: never more permits than without it.
//! - Nobody takes permits on a clock that shows the next period: these belong to the refill.
//! - Nobody takes permits while others wait for them, and a refusal needs no lock either.
//!
//! # Ground rules
//!
//! - The word is *open* or *closed*. Only the holder of the group's lock opens and closes it, and
//!   the group is only used while it is closed.
//! - `until` is only written while the word is closed.
//!
//! # A refill races a taker
//!
//! ```text
//! taker                               holder of the group's lock
//! until: it is earlier than that
//! word = (open, 5)
//!                                     close: word = closed, 5 are left
//!                                     refill, until = later, word = (open, 10)
//! (open, 5) to (open, 4): fails,
//! the word is (open, 10): again
//! ```
//!
//! Had the refill brought the word to 5 again, the exchange would have succeeded, and rightly: the
//! word is what the pool holds at that moment. A clock that was read before a refill and permits
//! that are taken after it are in order as well; the taking counts for the later period.

use crate::bandwidth::period::pass_refills;
use crate::bandwidth::settings::Settings;
use crate::time::Ns;
use crate::word::{Ordering, Word};

/// How many permits can be had without a lock, and until when.
#[derive(Debug)]
pub struct Permits<W> {
    /// `left << 1 | OPEN`, or [`CLOSED`].
    word: W,
    /// When the next refill is due.
    until: W,
}

const CLOSED: u64 = 0;
const OPEN: u64 = 1;

/// Relaxed: the word is a number of its own, and the group is ordered by its lock.
const RELAXED: Ordering = Ordering::Relaxed;

/// What came of taking permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Take {
    /// They are taken.
    Taken,
    /// There are too few of them until the next refill, or others wait for them.
    Refused,
    /// Only the group knows; take its lock.
    AskGroup,
}

impl<W: Word> Permits<W> {
    /// Closed: everybody asks the group.
    pub fn closed() -> Permits<W> {
        Permits { word: W::new(CLOSED), until: W::new(0) }
    }

    /// All that these settings allow, from `now` on, and without a group: for one key of many.
    pub fn full(settings: &Settings, now: Ns) -> Permits<W> {
        Permits::with(settings.most(), now.after(settings.period))
    }

    /// So many until the next refill, without a group.
    pub fn with(left: u64, until: Ns) -> Permits<W> {
        Permits { word: W::new(left << 1 | OPEN), until: W::new(until.0) }
    }

    /// Brings what the periods up to `now` are worth, for permits without a group. For a caller
    /// that has locked others out. Returns how many there are, and when the next refill is due.
    pub fn refill(&self, settings: &Settings, now: Ns) -> (u64, Ns) {
        let left = self.close().unwrap_or(0);
        let (left, until) = refilled(left, Ns(self.until.load(RELAXED)), settings, now);
        self.open(left, until);
        (left, until)
    }

    /// How many there are, for permits without a group. Others may take some meanwhile.
    pub fn available(&self, settings: &Settings, now: Ns) -> u64 {
        let until = Ns(self.until.load(RELAXED));
        refilled(self.word.load(RELAXED) >> 1, until, settings, now).0
    }

    /// Takes this many at once, or none. Takes no lock and makes no system call.
    #[inline]
    pub fn take(&self, amount: u64, now: Ns) -> Take {
        // Acquire: pairs with the Release in `open`. Who sees a period's end sees that the word was
        // closed since the period before, and takes nothing of that one's. (A checker cannot show
        // it: they carry stores out in the program's order.)
        // None at all is a question of order: are others waiting? The group knows.
        if now.0 >= self.until.load(Ordering::Acquire) || amount == 0 {
            return Take::AskGroup;
        }
        let mut word = self.word.load(RELAXED);
        while word != CLOSED {
            if amount > word >> 1 {
                return Take::Refused;
            }
            // A period that began meanwhile only ends later.
            match self.word.compare_exchange(word, word - (amount << 1), RELAXED, RELAXED) {
                Ok(_) => return Take::Taken,
                Err(found) => word = found,
            }
        }
        Take::AskGroup
    }

    /// Lets so many be taken on clocks that show less than `until`. For the holder of the group's
    /// lock, while closed.
    pub(crate) fn open(&self, left: u64, until: Ns) {
        // Release: pairs with the Acquire in `take`, for the word's having been closed.
        self.until.store(until.0, Ordering::Release);
        self.word.store(left << 1 | OPEN, RELAXED);
    }

    /// Lets nobody take any more. Returns how many are left; `None` if it was closed. For the
    /// holder of the group's lock.
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

/// What `left` has become by `now`, and when the next refill is due. Once all are there again the
/// next period begins with the next use, as if the key were new.
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
