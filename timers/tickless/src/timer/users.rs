//! Counts the users of a set of timers, to find out when the last one is gone: in a counter for
//! each CPU while the set is open, in one counter afterwards. A set with one base uses that one
//! counter from the start: it is then beside the other fields that a user of the set reads.
//!
//! Generic over the atomic word, so that model checkers run this file. A timer can be made on one
//! CPU and dropped on another, so only the sum over all CPUs is the number of users. After the last
//! [`Timers`](crate::Timers) has been dropped, the set ends when the sum reaches zero. The thread
//! that drops that last one closes the counts:
//!
//! | a thread that adds or removes a user | the thread that closes the counts |
//! |---|---|
//! | changes its CPU's count | takes each CPU's count, leaving `CLOSED` |
//! | if that was `CLOSED`: changes `all`, too | adds what it took to `all`, minus `OPEN` |
//!
//! Each change reaches `all` exactly once, because both threads change a CPU's count by an atomic
//! read-modify-write. While the counts are being taken, `all` is still near `OPEN`, so no thread
//! finds it zero. This is the idea of Linux's percpu-ref, without its grace period.

use tickless_core::platform::{Ordering, OwnLine, Word};

/// The lowest bit of a CPU's count, which is set when the count has been closed.
const CLOSED: u64 = 1;
/// What one user adds to a CPU's count, above the bit `CLOSED`.
const USER: u64 = 2;
/// Added to `all` while the set is open, to keep threads from finding `all` zero. Larger than the
/// number of users can become.
const OPEN: u64 = 1 << 62;

#[derive(Debug)]
pub struct Users<W> {
    /// A count for each CPU, or more, up to a power of two. Empty if there is one base.
    by_cpu: Box<[OwnLine<W>]>,
    /// The number of users that no CPU's count has, and [`OPEN`] while the set is open.
    all: W,
    /// Whether users are counted: the set ends when the last one is gone.
    pub are_counted: bool,
}

impl<W: Word> Users<W> {
    /// Creates counts for this many bases, without users. With 0, users are not counted at all.
    pub fn new(bases: usize) -> Users<W> {
        let words = if bases > 1 { bases.next_power_of_two() } else { 0 };
        let by_cpu = (0..words).map(|_| OwnLine(W::new(0))).collect();
        Users { by_cpu, all: W::new(OPEN), are_counted: bases > 0 }
    }

    /// Adds a user. The caller must be a user itself, or keep the set open.
    #[inline]
    pub fn add(&self, cpu: impl FnOnce() -> usize) {
        // Relaxed: the caller is a user or keeps the set open, so the set cannot end in this call.
        let is_closed = |count: &W| count.add(USER, Ordering::Relaxed) & CLOSED != 0;
        if self.are_counted && self.of_cpu(cpu).is_none_or(is_closed) {
            self.all.add(1, Ordering::Relaxed);
        }
    }

    /// Removes a user. Returns whether it was the last user of a closed set: then the caller must
    /// end the set. Otherwise the caller must not use the set any more.
    #[inline]
    #[must_use]
    pub fn remove(&self, cpu: impl FnOnce() -> usize) -> bool {
        // Release: pairs with the Acquire in `close`. The thread that ends the set sees everything
        // that was done through this user.
        let is_closed = |count: &W| count.add(USER.wrapping_neg(), Ordering::Release) & CLOSED != 0;
        self.are_counted && self.of_cpu(cpu).is_none_or(is_closed) && self.remove_from_all()
    }

    #[inline]
    fn remove_from_all(&self) -> bool {
        // AcqRel: the Release publishes what was done through this user. The Acquire lets the
        // thread that removes the last user, and ends the set, see what was done through all users.
        self.all.add(1u64.wrapping_neg(), Ordering::AcqRel) == 1
    }

    /// Closes a set that counts its users. Called once. Returns whether no user is left, so that
    /// the caller must end the set. If users are left, the caller must not use the set any more.
    #[must_use]
    pub fn close(&self) -> bool {
        // Acquire: pairs with the Release in `remove`.
        let take = |OwnLine(count): &OwnLine<W>| count.swap(CLOSED, Ordering::Acquire);
        let taken = self.by_cpu.iter().map(take).fold(0, u64::wrapping_add);
        let change = users_in(taken).wrapping_sub(OPEN);
        // AcqRel: as in `remove_from_all`.
        self.all.add(change, Ordering::AcqRel).wrapping_add(change) == 0
    }

    /// Returns the number of users of an open set. Exact only if no thread adds or removes users.
    pub fn count(&self) -> usize {
        // Acquire: a caller that gets 0 also sees the writes of the users that have ended.
        let counts = self.by_cpu.iter().map(|OwnLine(count)| count.load(Ordering::Acquire));
        let of_cpus = users_in(counts.fold(0, u64::wrapping_add));
        let all = self.all.load(Ordering::Acquire).wrapping_add(of_cpus).wrapping_sub(OPEN);
        // The sum is negative if users were removed while the counts were being read.
        usize::try_from(all as i64).unwrap_or(0)
    }

    #[inline]
    fn of_cpu(&self, cpu: impl FnOnce() -> usize) -> Option<&W> {
        let mask = self.by_cpu.len().checked_sub(1)?;
        self.by_cpu.get(cpu() & mask).map(|OwnLine(count)| count)
    }
}

/// Converts a sum of CPU counts to the number of users, which can be negative.
fn users_in(counts: u64) -> u64 {
    (counts as i64 / USER as i64) as u64
}
