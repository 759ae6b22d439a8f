//! The timer wheel: for timeouts that are armed and pushed out often, and seldom fire.
//!
//! Each base has one for its coarse timers; `LocalTimers` has another implementation with the same
//! levels. The wheel takes no lock and reads no clock: callers pass the current time.
//!
//! # Levels
//!
//! | level | granule, ticks | reaches, ticks | with a 1 ms tick |
//! |---|---|---|---|
//! | 0 | 1 | 63 | 1 ms up to 63 ms |
//! | 1 | 8 | 497 | 8 ms up to 0.5 s |
//! | 2 | 64 | 3,972 | 64 ms up to 4 s |
//! | 3 | 512 | 31,776 | 0.5 s up to 32 s |
//! | 4 | 4,096 | 254,201 | 4 s up to 4 min |
//! | 5 | 32,768 | 2,033,602 | 33 s up to 34 min |
//! | 6 | 262,144 | 16,268,816 | 4 min up to 4.5 h |
//! | 7 | 2,097,152 | 130,150,525 | 35 min up to 36 h |
//! | 8 | 16,777,216 | 1,040,187,392 | 4.7 h up to 12 days |
//!
//! A level has 64 buckets of one granule each. A timer is placed on the finest level that reaches
//! its distance (the time to its deadline), and stays there: timers do not move to finer levels
//! ("cascade") as they come nearer. Its expiry is rounded up to the level's granule, at most 33/256
//! of the distance: 12.9 %. Source: the wheel of Linux since 4.8 (T. Gleixner, "timers: Switch to a
//! non-cascading wheel", 2016). Beyond the last level the *distance* is clamped; the timer is
//! placed again when the clamped distance has passed (D7, W5).
//!
//! `docs/dev/contract.md` has the guarantees, under "Wheel and queue".
//!
//! # Pushing out
//!
//! Re-arming a pending timer for a later time is what servers do most, and with a million timers
//! each accessed list neighbour is a cache miss. So a push-out only changes the deadline, which the
//! timer's owner stores ([`link`](crate::link)). The timer stays on its list; when the list comes
//! due, the wheel reads the deadline and moves the timer to its proper bucket.
//!
//! # Expiring many
//!
//! Each bucket has a list for each eighth of its granule. The eighths fire in order, so that even a
//! coarse bucket fires nearly sorted; equal deadlines are always in one eighth, first in first out.
//! The eighths are separate lists so that they can be prefetched side by side while the first one
//! fires: see `run_ahead`.

mod buckets;
mod by_deadline;
mod check;
mod place;
mod run_ahead;
mod walk;

pub(crate) use walk::At;
use walk::Cursor;
pub use walk::Levels;

use crate::link::{Lists, WheelRef};
use crate::state::Held;
use crate::time::{Ns, Tick};
use alloc::boxed::Box;
use core::mem::offset_of;
use once_cell::race::OnceBox;
use place::DEFERRABLE;
pub(crate) use place::{WheelPlace, level_of};
use run_ahead::RunAhead;

/// Number of levels.
pub const LEVELS: usize = 9;
/// Number of buckets on a level: one for each bit of a 64-bit word.
pub const SLOTS: usize = 64;
const BUCKETS: usize = LEVELS * SLOTS;
/// Number of lists in a bucket: one for each eighth of its granule.
const LANES: usize = 8;
/// The list of timers that have come due and wait to be popped.
const DUE: usize = BUCKETS * LANES;
/// The list of timers that have come due since the last `advance`, or were armed for the past. They
/// are not popped before the next `advance`: otherwise a callback that always rearms its timer for
/// the past would prolong a pass for ever.
const OVERDUE: usize = DUE + 1;
/// The lists and the buckets: nearly all memory of a wheel. The number of buckets is a power of
/// two: a masked index needs no bounds check.
pub(crate) type WheelLists = Lists<{ OVERDUE + 1 }, [Bucket; BUCKETS.next_power_of_two()]>;
/// The largest distance in ticks that the top level can hold, at any position of the clock.
pub const REACH: u64 = 62 << (3 * (LEVELS - 1));

/// How an owner of a wheel re-arms a pending timer for a later time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PushOut {
    /// Only the timer's deadline changes; the timer moves when the old bucket comes due. In
    /// [`Bases`](crate::bases::Bases) this takes no lock.
    #[default]
    Lazy,
    /// The timer moves to its new bucket at once. Equal deadlines fire exactly in order of arming.
    Eager,
}

/// Access to the deadlines of a wheel's timers. The owner of the timers stores them, not the wheel.
pub trait Deadlines {
    /// Closes a timer's deadline, so that no thread can push it out (move it later), unless the
    /// deadline is later than `by`. Returns the deadline: as `Ok` if it is closed now, as `Err` if
    /// it is later.
    fn close_by(&mut self, node: WheelRef, by: Ns) -> Result<Ns, Ns>;

    /// Reports that a timer whose deadline is later than its bucket was moved to another bucket.
    /// `held` contains the timer's new level.
    fn moved(&mut self, node: WheelRef, held: Held);
}

/// The result of [`Wheel::pop`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Popped {
    /// A timer that is due, and its deadline.
    Due(WheelRef, Ns),
    /// A timer was not due, because its deadline had been moved later (pushed out), and was moved
    /// to its proper bucket. More timers are perhaps due.
    PushedOut,
    /// No timer is due.
    Nothing,
}

/// Whether a pending timer causes a wakeup.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wakes {
    /// The timer counts for [`Wheel::next_event`].
    #[default]
    Yes,
    /// Deferrable: it fires with the first advance after its expiry, and causes no wakeup.
    No,
}

/// A hierarchical timer wheel. Arm, re-arm and cancel are O(1) and allocate nothing.
//
// The order of the fields is that in memory: every arming reads those in front, and every expiry
// writes the counts at the end. They are on different cache lines, so that a thread which arms a
// timer does not wait for a line that another CPU writes for each timer that is due.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Wheel {
    tick: Tick,
    /// The wheel's clock, in ticks. Timers that are due by this tick are on `DUE` or `OVERDUE`.
    clk: u64,
    /// When the tick after `clk` begins. An arming before that time need not move the clock. Zero
    /// for an exact wheel, so that [`find`](Wheel::find) refuses it.
    clk_until: Ns,
    /// The tick of the latest `advance`.
    target: u64,
    /// Timers on `DUE` with a deadline at or before this are popped. The deadlines of the others
    /// were pushed out, so they are moved to their new buckets.
    pop_by: Ns,
    /// Whether timers fire exactly at their deadlines, not with their buckets: then
    /// [`gather`](Wheel::gather) collects the due timers, and arming does not move the clock.
    is_exact: bool,
    /// Whether `run_ahead` or `cursor` possibly refers to a timer: then a removal checks both.
    is_walked: bool,
    /// A lower bound of the tick at which the next bucket comes due. Only buckets that are occupied
    /// or live (see `Level`) count.
    next_mark: u64,
    lists: WheelLists,
    /// One element for each level, and more: as for the buckets.
    levels: [Level; LEVELS.next_power_of_two()],
    /// The number of timers on `DUE` and `OVERDUE` that are not deferrable.
    due_live: usize,
    deferrable: usize,
    relocated: u64,
    run_ahead: RunAhead,
    cursor: Cursor,
}

const _: () = assert!(offset_of!(Wheel, lists) / 64 < offset_of!(Wheel, due_live) / 64);

/// The state of a level, in words with a bit for each bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// A bucket's bit is set if one of its lists is not empty.
    occupied: u64,
    /// A bucket's bit is set if it has a timer that is not deferrable.
    live: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// The number of timers on the bucket's lists that are not deferrable.
    count: u32,
    /// A bit for each list that is not empty. From bit [`LANES`] on, a bit for each list to which a
    /// timer was added since the list was sorted, for [`by_deadline`].
    lanes: u16,
}

impl Bucket {
    fn is_empty(&self) -> bool {
        self.lanes as u8 == 0
    }
}

impl Wheel {
    /// The largest number of timers that one [`pop`](Wheel::pop) examines.
    pub const LOOKS_MAX: usize = 1 + LANES;

    /// Returns an empty wheel with its clock at `now`. Allocates its lists, 80 KiB.
    pub fn new(tick: Tick, now: Ns) -> Wheel {
        Wheel::on(Wheel::new_lists(), tick, now)
    }

    /// Does the same without lists of its own, which [`add_lists`](Wheel::add_lists) adds later.
    ///
    /// # Safety
    /// Before that no timer is armed.
    #[expect(unsafe_code, reason = "wheels without timers read the same lists")]
    pub(crate) unsafe fn without_lists(tick: Tick, now: Ns) -> Wheel {
        static EMPTY: OnceBox<WheelLists> = OnceBox::new();
        let empty = EMPTY.get_or_init(|| Box::new(Wheel::new_lists()));
        // SAFETY: no timer is ever armed on `EMPTY`, nor, as the caller promises, on this wheel.
        // Without a timer a wheel only reads its lists.
        Wheel::on(unsafe { empty.lend() }, tick, now)
    }

    pub(crate) fn new_lists() -> WheelLists {
        Lists::new([Bucket::default(); BUCKETS.next_power_of_two()])
    }

    pub(crate) fn has_lists(&self) -> bool {
        !self.lists.is_lent()
    }

    /// Makes the wheel use these lists, unless it has some of its own. Returns what it does not
    /// use, for the caller to drop.
    pub(crate) fn add_lists(&mut self, lists: WheelLists) -> WheelLists {
        if self.has_lists() { lists } else { core::mem::replace(&mut self.lists, lists) }
    }

    fn on(lists: WheelLists, tick: Tick, now: Ns) -> Wheel {
        let clk = tick.floor(now);
        Wheel {
            tick,
            clk,
            clk_until: tick.start(clk + 1),
            target: clk,
            pop_by: tick.start(clk),
            is_exact: false,
            next_mark: u64::MAX,
            lists,
            levels: Default::default(),
            due_live: 0,
            deferrable: 0,
            relocated: 0,
            run_ahead: RunAhead::default(),
            cursor: Cursor::default(),
            is_walked: false,
        }
    }

    /// Returns the number of pending timers. Reads one count for each of at most 576 buckets.
    pub fn len(&self) -> usize {
        self.by_level().total()
    }

    /// Returns whether no timer is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of its tick.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// Returns how many times a timer was moved to its proper bucket because it had been pushed
    /// out, or was beyond the wheel's reach.
    pub fn relocated(&self) -> u64 {
        self.relocated
    }

    /// Arms a timer that is not pending. Returns its level, and whether it is deferrable. O(1).
    ///
    /// The distance to the deadline counts from the wheel's clock: see [`forward`](Wheel::forward).
    /// A deadline that has passed comes due with the next [`advance`](Wheel::advance).
    ///
    /// Panics if the timer is pending: [`cancel`](Wheel::cancel) it first.
    #[inline(always)]
    pub fn arm(&mut self, node: WheelRef, deadline: Ns, wakes: Wakes) -> Held {
        self.put(node, deadline, wakes as u64 * DEFERRABLE).held()
    }

    /// Finds the place and the list for a timer that wakes, to [put](Wheel::put_on) it there, if
    /// that is simple: the wheel is not exact, its clock need not move, and the deadline is ahead
    /// and within reach.
    #[inline(always)]
    pub(crate) fn find(&self, at: Ns, now: Ns) -> Option<(WheelPlace, usize)> {
        if now >= self.clk_until { None } else { self.near(at, 0) }
    }

    /// Brings the clock up to date before an arming: a clock that lags would make the timer's
    /// distance seem longer, and its level coarser, than necessary. `now` is allowed to be older
    /// than a time that the wheel has seen.
    #[inline]
    pub fn forward(&mut self, now: Ns) {
        if self.moves_clock(now) {
            self.forward_to(now);
        }
    }

    /// Returns the level of a pending timer and whether it is deferrable.
    #[inline]
    pub(crate) fn held(node: WheelRef) -> Held {
        WheelPlace::of(node).held()
    }

    /// Cancels a timer. Returns whether it was pending. O(1).
    #[inline]
    pub fn cancel(&mut self, node: WheelRef) -> bool {
        let is_pending = node.is_linked();
        if is_pending {
            self.unlink(node);
        }
        is_pending
    }

    /// Sets the current time: timers that are due by `now` can be popped. A timer that is armed for
    /// the past after this call waits for the next call. A `now` before the time of an earlier call
    /// counts as the time of that call. O(1).
    pub fn advance(&mut self, now: Ns) {
        self.target = self.target.max(self.tick.floor(now)).max(self.clk);
        let by = if self.is_exact { now } else { self.tick.start(self.clk) };
        self.pop_by = self.pop_by.max(by);
        self.splice(OVERDUE, DUE);
    }

    /// Examines the next timer of the buckets that the last [`advance`](Wheel::advance) reached, in
    /// the order of expiry. If its deadline has passed, removes the timer; its deadline can then no
    /// longer be changed (see [`close_by`](Deadlines::close_by)). If its deadline was made later
    /// since, moves the timer to the bucket of the new deadline. O(1) amortised.
    ///
    /// `looks` is raised by one for each timer that was accessed, by at most
    /// [`LOOKS_MAX`](Wheel::LOOKS_MAX), so that the caller can bound its work. The remaining timers
    /// stay first in line and can still be cancelled.
    #[inline(always)]
    pub fn pop(&mut self, looks: &mut usize, deadlines: &mut impl Deadlines) -> Popped {
        let node = loop {
            match self.lists.pop_front(DUE) {
                Some(node) => break node,
                None if self.step() => {}
                None => return Popped::Nothing,
            }
        };
        if self.cursor.is_before(node) {
            self.cursor.go_on_to(self.lists.front(DUE));
        }
        self.uncount_due(WheelPlace::of(node));
        *looks += 1 + self.run_ahead.step(&self.lists);
        match deadlines.close_by(node, self.pop_by) {
            Ok(deadline) => Popped::Due(node, deadline),
            Err(deadline) => {
                self.relocate(node, deadline);
                deadlines.moved(node, Wheel::held(node));
                Popped::PushedOut
            }
        }
    }

    /// Returns when the next timer comes due, or [`Ns::NEVER`]; deferrable timers do not count. The
    /// time is never late (W3), but early if all timers of the first bucket were armed again for a
    /// later time and have not been moved yet. The cost depends on the number of levels only.
    pub fn next_event(&self) -> Ns {
        if self.due_live > 0 {
            return self.tick.start(self.clk);
        }
        if !self.is_marked() {
            return Ns::NEVER;
        }
        match self.earliest(|level| level.live) {
            u64::MAX => Ns::NEVER,
            tick => self.tick.start(tick),
        }
    }

    /// Returns when a pending timer comes due with its bucket, unless it has been pushed out by
    /// then. The time is never before the deadline. [`Ns::NEVER`] if the timer is deferrable.
    #[inline]
    pub fn due_at(&self, node: WheelRef) -> Ns {
        let place = WheelPlace::of(node);
        if place.is_deferrable() { Ns::NEVER } else { place.due(self.tick) }
    }

    /// Returns every pending timer, in no particular order.
    pub fn timers(&self) -> impl Iterator<Item = WheelRef> {
        self.lists_in_use().flat_map(|list| self.lists.nodes(list))
    }

    /// Returns the lists that are marked as not empty, and those of due timers.
    fn lists_in_use(&self) -> impl Iterator<Item = usize> {
        let marked = move |bucket: usize| {
            let lanes =
                (0..LANES).filter(move |lane| self.buckets()[bucket].lanes >> lane & 1 == 1);
            lanes.map(move |lane| bucket * LANES + lane)
        };
        let occupied = (0..BUCKETS).filter(|&bucket| !self.buckets()[bucket].is_empty());
        (DUE..=OVERDUE).chain(occupied.flat_map(marked))
    }

    /// Returns whether a bucket is marked as not empty. It is also `true` if all such buckets have
    /// become empty since the clock last moved.
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.next_mark != u64::MAX
    }

    /// Returns whether arming at this time would move the clock.
    #[inline]
    pub(crate) fn moves_clock(&self, now: Ns) -> bool {
        now >= self.clk_until && !self.is_exact
    }

    /// Advances the clock to the current time without examining any timer.
    #[cold]
    fn forward_to(&mut self, now: Ns) {
        let to = self.tick.floor(now);
        while self.next_mark <= to {
            let next = self.next_marked();
            if next <= to {
                self.collect(next);
            }
        }
        self.set_clk(to);
    }

    /// Moves the timers of the next buckets that have come due by `target` to the due list. Returns
    /// whether there were such buckets.
    #[inline(never)]
    fn step(&mut self) -> bool {
        self.run_ahead.stop();
        if self.next_mark <= self.target {
            let next = self.next_marked();
            if next <= self.target {
                self.collect(next);
                return true;
            }
        }
        if self.target > self.clk {
            self.set_clk(self.target);
        }
        false
    }

    fn set_clk(&mut self, clk: u64) {
        debug_assert!(clk >= self.clk, "the wheel's clock went back");
        self.clk = clk;
        if !self.is_exact {
            self.clk_until = self.tick.start(clk + 1);
        }
        // `min`: an arming has possibly moved the clock beyond `target`, the tick of the last
        // `advance`. Timers with a deadline after that tick are not popped yet.
        self.pop_by = self.pop_by.max(self.tick.start(clk.min(self.target)));
    }

    /// Moves the timers of the buckets that expire at `clk` to the due list, the coarsest bucket
    /// first: of timers with the same deadline, those on the higher level were armed earlier (W4).
    fn collect(&mut self, clk: u64) {
        self.set_clk(clk);
        // If `clk` is after the time of the last advance, the timers wait for the next advance,
        // behind the timers that were armed for the past.
        let onto = if clk <= self.target { DUE } else { OVERDUE };
        for level in (0..LEVELS).rev() {
            if clk.trailing_zeros() < 3 * level as u32 {
                continue;
            }
            let bucket = WheelPlace::new(clk, level, 0).bucket();
            let bit = 1 << (bucket % SLOTS);
            if self.levels[level].occupied & bit != 0 {
                self.levels[level].occupied &= !bit;
                let lanes = core::mem::take(&mut self.bucket(bucket).lanes);
                for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                    let list = bucket * LANES + lane;
                    if onto == DUE && self.buckets()[bucket].count >= RunAhead::WORTHWHILE {
                        let is_behind = !self.lists.is_empty(DUE);
                        self.run_ahead.add(self.lists.both_ends(list), is_behind);
                        self.is_walked = true;
                    }
                    self.splice(list, onto);
                }
            }
            if self.levels[level].live & bit != 0 {
                self.levels[level].live &= !bit;
                self.due_live += core::mem::take(&mut self.bucket(bucket).count) as usize;
            }
        }
    }

    #[inline]
    fn bucket(&mut self, bucket: usize) -> &mut Bucket {
        &mut self.lists.about_mut()[bucket % BUCKETS.next_power_of_two()]
    }

    fn buckets(&self) -> &[Bucket] {
        self.lists.about()
    }

    #[inline]
    fn level(&mut self, level: usize) -> &mut Level {
        &mut self.levels[level % LEVELS.next_power_of_two()]
    }

    /// Puts a timer that was on `DUE`, but is not due, into its proper bucket.
    #[inline(never)]
    fn relocate(&mut self, node: WheelRef, deadline: Ns) {
        self.put(node, deadline, WheelPlace::of(node).0 & DEFERRABLE);
        self.relocated += 1;
    }

    /// Returns the tick of the earliest occupied or live bucket, and makes `next_mark` exact.
    fn next_marked(&mut self) -> u64 {
        self.next_mark = self.earliest(|level| level.occupied | level.live);
        self.next_mark
    }

    /// Returns the tick of the earliest bucket with its bit in `bitmap_of(level)`, or `u64::MAX`.
    fn earliest(&self, bitmap_of: impl Fn(&Level) -> u64) -> u64 {
        let mut earliest = u64::MAX;
        for (level, bitmap) in self.levels[..LEVELS].iter().map(bitmap_of).enumerate() {
            if bitmap != 0 {
                // The buckets of a level are 1 to 64 granules after the clock's granule.
                let first = (self.clk >> (3 * level)) + 1;
                let ahead = bitmap.rotate_right((first % SLOTS as u64) as u32).trailing_zeros();
                earliest = earliest.min((first + u64::from(ahead)) << (3 * level));
            }
        }
        earliest
    }
}
