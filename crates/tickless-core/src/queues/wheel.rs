//! The timer wheel: timeouts that are armed often, pushed out often, and seldom fire.
//!
//! Used by every base for coarse timers, and by `LocalTimers` directly. It has no lock and no
//! clock: whoever owns it passes the present in.
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
//! A timer goes into the level that reaches its distance and stays there: nothing cascades.
//! Its expiry is rounded up to the level's granule, at most 33/256 of the distance: 12.9 %.
//! Source: the wheel that Linux has had since 4.8 (T. Gleixner, "timers: Switch to a
//! non-cascading wheel", 2016). Beyond the last level the *distance* is clamped and the rest
//! is armed when that has passed (D7, W5).
//!
//! # Guarantees
//!
//! W1 never early, late by less than a granule; W2 bounded work on request; W3 the next event
//! is exact but for timers that were put off, and never late; W4 timers that fall on one instant
//! fire as armed; D5 the clock never goes back and jumps over empty time; D6 collecting is constant
//! work per bucket.
//!
//! # Pushing out
//!
//! Re-arming a pending timer to a later time is what servers do most, and with a million timers
//! each list neighbour touched is a cache miss. So the wheel does not hear of it: deadlines are
//! with its owner, who may make one later at any time ([`link`](crate::link)). The timer stays on
//! its list; when that comes due, the wheel asks for the deadline, and moves the timer to where it
//! belongs then. Until then the wheel's next event may be too early, for nothing. The price: a
//! timer that was pushed out lines up among those of its instant when it is moved, not when it was
//! pushed out.
//!
//! # Expiring many
//!
//! Each bucket has a list for each eighth of its granule. Eighths fire in order, so that even a
//! coarse bucket comes nearly sorted; equal deadlines are always in one eighth, first in first out.
//! Because the eighths are separate chains, they can be walked side by side while the first is
//! fired: see `run_ahead`.

mod by_deadline;
mod check;
mod place;
mod run_ahead;
mod walk;

pub use check::WheelFault;
pub(crate) use walk::At;
use walk::Cursor;
pub use walk::Levels;

use crate::link::{Lists, WheelRef};
use crate::state::Held;
use crate::time::{Ns, Tick};
use alloc::boxed::Box;
use place::DEFERRABLE;
pub(crate) use place::{WheelPlace, level_of};
use run_ahead::RunAhead;

/// Number of levels.
pub const LEVELS: usize = 9;
/// Buckets a level: one word of bitmap.
pub const SLOTS: usize = 64;
const BUCKETS: usize = LEVELS * SLOTS;
/// Lists a bucket: one for each eighth of its granule. They are fired in order, so that a
/// bucket comes nearly sorted, and they can be walked side by side (see [`RunAhead`]).
const LANES: usize = 8;
/// What has come due and waits to be popped.
const DUE: usize = BUCKETS * LANES;
/// What has come due since the last advance, or was armed for the past: popped from the next
/// advance on, so that a callback which re-arms itself for the past cannot hold one up forever.
const OVERDUE: usize = DUE + 1;
/// One for each of these.
type WheelLists = Lists<{ OVERDUE + 1 }>;
/// The farthest distance in ticks that the top level can hold at any alignment.
pub const REACH: u64 = 62 << (3 * (LEVELS - 1));

/// How re-arming a pending timer to a later time is done, by those who own wheels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PushOut {
    /// Only the timer itself is touched; its list follows when the old bucket comes due. From
    /// [`Bases`](crate::bases::Bases) that takes no lock.
    #[default]
    Lazy,
    /// The timer moves to its new bucket at once. Order among equals is exactly as armed.
    Eager,
}

/// What a wheel asks the owner of its timers' deadlines.
pub trait Deadlines {
    /// Ends what may be done to a timer's deadline beside the wheel, unless it is later than `by`.
    /// Returns the deadline either way.
    fn close_by(&mut self, node: WheelRef, by: Ns) -> Result<Ns, Ns>;

    /// Says that a timer with a later deadline was moved to where it belongs.
    fn moved(&mut self, node: WheelRef, held: Held);
}

/// What a wheel found first in line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Popped {
    /// A timer that is due, and its deadline.
    Due(WheelRef, Ns),
    /// A timer that had been put off. There may be more in line.
    PushedOut,
    /// None.
    Nothing,
}

/// Does a pending timer keep a CPU awake?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wakes {
    /// The next event takes it into account.
    #[default]
    Yes,
    /// Deferrable: fires with the first advance after its expiry, causes none.
    No,
}

/// A hierarchical timer wheel. Arm, re-arm and cancel are O(1) and allocate nothing.
#[derive(Debug)]
pub struct Wheel {
    tick: Tick,
    /// Everything due at or before this tick is on `DUE` or `OVERDUE`.
    clk: u64,
    /// When the tick after `clk` begins: an arm before that need not move the clock.
    clk_until: Ns,
    /// How far `advance` was told to go.
    target: u64,
    /// What has a deadline at or before this, and has come due, is popped.
    pop_by: Ns,
    /// Is [`gather`](Wheel::gather) called for what is due? Then nothing else moves the clock.
    is_exact: bool,
    /// At or before the earliest bucket that is occupied or live.
    next_mark: u64,
    lists: WheelLists,
    /// By level. A power of two of them, so that a masked index needs no check; likewise below.
    levels: [Level; LEVELS.next_power_of_two()],
    buckets: Box<[Bucket; BUCKETS.next_power_of_two()]>,
    /// How many non-deferrable timers have come due.
    due_live: usize,
    /// How many deferrable timers are pending.
    deferrable: usize,
    relocated: u64,
    run_ahead: RunAhead,
    cursor: Cursor,
    /// Unless this is set, neither of these two stands on any timer.
    is_walked: bool,
}

/// What is known of a level: a bit for each bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Has it a list that is not empty?
    occupied: u64,
    /// Does it hold a count?
    live: u64,
}

/// What is known of a bucket, beside its lists.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// How many non-deferrable timers are on its lists.
    count: u32,
    /// Which of its lists are not empty; and from bit [`LANES`] on, which were added to since they
    /// were sorted, for [`by_deadline`].
    lanes: u16,
}

impl Bucket {
    fn is_empty(&self) -> bool {
        self.lanes as u8 == 0
    }
}

impl Wheel {
    /// How many timers one [`pop`](Wheel::pop) looks at, at most.
    pub const LOOKS_MAX: usize = 1 + LANES;

    /// An empty wheel whose clock stands at `now`. Allocates its buckets, 75 KiB, once.
    pub fn new(tick: Tick, now: Ns) -> Wheel {
        let clk = tick.floor(now);
        Wheel {
            tick,
            clk,
            clk_until: tick.start(clk + 1),
            target: clk,
            pop_by: tick.start(clk),
            is_exact: false,
            next_mark: u64::MAX,
            lists: Lists::new(),
            levels: Default::default(),
            buckets: Box::new([Bucket::default(); BUCKETS.next_power_of_two()]),
            due_live: 0,
            deferrable: 0,
            relocated: 0,
            run_ahead: RunAhead::default(),
            cursor: Cursor::default(),
            is_walked: false,
        }
    }

    /// Number of pending timers, deferrable ones and those that wait to be popped included.
    /// O(occupied buckets), at most 576.
    pub fn len(&self) -> usize {
        self.by_level().total()
    }

    /// Is no timer pending?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tick it counts in.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// How often a pushed-out timer was moved to the list where it belongs.
    pub fn relocated(&self) -> u64 {
        self.relocated
    }

    /// Arms an idle timer or moves a pending one. Returns when it will be looked at, which for a
    /// timer that is not put off is when it is due: never before `deadline`, and [`Ns::NEVER`] if
    /// it is deferrable. O(1).
    ///
    /// `now` may be older than what the wheel has seen; it is only used to keep far timers
    /// from being rounded as if they had been armed in the past. A deadline that has passed
    /// comes due with the next [`advance`](Wheel::advance).
    #[inline(always)]
    pub fn arm(&mut self, node: WheelRef, deadline: Ns, now: Ns, wakes: Wakes) -> Ns {
        if self.is_news(now) || node.is_linked() {
            return self.arm_anew(node, deadline, now, wakes);
        }
        self.put_in(node, deadline, wakes).0
    }

    /// The same for a timer that is pending, or a present that moves the clock.
    #[inline(never)]
    fn arm_anew(&mut self, node: WheelRef, deadline: Ns, now: Ns, wakes: Wakes) -> Ns {
        if self.is_news(now) {
            self.forward_to(now);
        }
        if node.is_linked() {
            self.unlink(node);
        }
        self.put_in(node, deadline, wakes).0
    }

    /// Puts a timer that is on no list where it belongs, seen from the present that the wheel has
    /// been told. Returns when it will be looked at, and how it is held, for its word.
    #[inline(always)]
    pub(crate) fn put_in(&mut self, node: WheelRef, deadline: Ns, wakes: Wakes) -> (Ns, Held) {
        let place = self.put(node, deadline, wakes as u64 * DEFERRABLE);
        (self.wakes_at(place), place.held())
    }

    /// How a pending timer is held, for its word.
    #[inline]
    pub(crate) fn held(node: WheelRef) -> Held {
        WheelPlace::of(node).held()
    }

    /// Takes a timer off if it is pending. Returns whether it was. O(1).
    #[inline]
    pub fn cancel(&mut self, node: WheelRef) -> bool {
        let is_pending = node.is_linked();
        if is_pending {
            self.unlink(node);
        }
        is_pending
    }

    /// Tells the wheel the time. What has come due by then is popped afterwards; what is armed
    /// for the past from here on waits for the next call. A time before one that the wheel has
    /// been told already counts as that one (D5). O(1).
    pub fn advance(&mut self, now: Ns) {
        self.target = self.target.max(self.tick.floor(now)).max(self.clk);
        let by = if self.is_exact { now } else { self.tick.start(self.clk) };
        self.pop_by = self.pop_by.max(by);
        self.splice(OVERDUE, DUE);
    }

    /// Looks for the next timer that is due by the time of the last [`advance`](Wheel::advance), in
    /// order of expiry, and takes it off the wheel: after this it has been
    /// [closed](Deadlines::close_by). One that was put off goes to where it belongs instead. O(1)
    /// amortised. `looks` is raised by one for every timer looked at, by at most
    /// [`LOOKS_MAX`](Wheel::LOOKS_MAX) (W2). What is left stays first in line and can still be
    /// cancelled.
    #[inline(always)]
    pub fn pop(&mut self, looks: &mut usize, deadlines: &mut impl Deadlines) -> Popped {
        let node = loop {
            match self.lists.front(DUE) {
                Some(node) => break node,
                None if self.step() => {}
                None => return Popped::Nothing,
            }
        };
        *looks += 1 + self.run_ahead.step(&self.lists);
        match deadlines.close_by(node, self.pop_by) {
            Ok(deadline) => {
                self.uncount_due(WheelPlace::of(node));
                self.take_first(node);
                Popped::Due(node, deadline)
            }
            Err(deadline) => {
                self.relocate(node, deadline);
                deadlines.moved(node, Wheel::held(node));
                Popped::PushedOut
            }
        }
    }

    /// When to look for the next timer that is due, or [`Ns::NEVER`]; deferrable timers left out.
    /// Exact to the tick but for timers that were put off: never late, and early, for nothing,
    /// where a bucket has none but these (W3). A value that has passed means that something is
    /// due. O(levels).
    pub fn next_event(&self) -> Ns {
        if self.due_live > 0 {
            return self.tick.start(self.clk);
        }
        match self.earliest(|level| level.live) {
            u64::MAX => Ns::NEVER,
            tick => self.tick.start(tick),
        }
    }

    /// When a timer that is pending comes due; [`Ns::NEVER`] if it is deferrable.
    #[inline]
    pub fn due_at(&self, node: WheelRef) -> Ns {
        self.wakes_at(WheelPlace::of(node))
    }

    /// Some pending timer that is wanted: of the first list that has one, the first. O(buckets),
    /// and O(1) more for each timer that is not wanted.
    pub(crate) fn find(&self, mut wanted: impl FnMut(WheelRef) -> bool) -> Option<WheelRef> {
        [DUE, OVERDUE].into_iter().chain(self.occupied_lists()).find_map(|list| {
            let first = self.lists.front(list);
            core::iter::successors(first, |node| self.lists.after(*node)).find(|node| wanted(*node))
        })
    }

    /// The lists of buckets that are not empty.
    fn occupied_lists(&self) -> impl Iterator<Item = usize> {
        let lanes_of = |bucket: usize| (bucket, self.buckets[bucket].lanes);
        (0..BUCKETS).map(lanes_of).flat_map(|(bucket, lanes)| {
            (0..LANES).filter(move |lane| lanes >> lane & 1 == 1).map(move |l| bucket * LANES + l)
        })
    }

    /// Visits every pending timer, in no particular order.
    pub fn for_each(&self, mut visit: impl FnMut(WheelRef)) {
        for list in 0..=OVERDUE {
            let mut at = self.lists.front(list);
            while let Some(node) = at {
                at = self.lists.after(node);
                visit(node);
            }
        }
    }

    /// Would a present at or after this one move the clock? One before it changes nothing.
    #[inline]
    pub(crate) fn is_news(&self, now: Ns) -> bool {
        now >= self.clk_until
    }

    #[inline]
    fn wakes_at(&self, place: WheelPlace) -> Ns {
        if place.is_deferrable() { Ns::NEVER } else { place.due(self.tick) }
    }

    /// Brings the clock to the present without looking at any timer.
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

    /// Goes on to the next bucket that has come due by the target, if there is one.
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
        // The clock may be ahead of the round, for what was armed meanwhile.
        self.pop_by = self.pop_by.max(self.tick.start(clk.min(self.target)));
    }

    /// Collects the buckets that expire at `clk`, the coarsest first: of timers with one
    /// deadline, those on the higher level were armed earlier (W4).
    fn collect(&mut self, clk: u64) {
        self.set_clk(clk);
        // What no advance has asked for yet lines up behind what was armed for the past.
        let onto = if clk <= self.target { DUE } else { OVERDUE };
        for level in (0..LEVELS).rev() {
            if clk.trailing_zeros() < 3 * level as u32 {
                continue;
            }
            let bucket = WheelPlace::new(clk, level, 0).bucket();
            let bit = 1 << (bucket % SLOTS);
            if self.levels[level].occupied & bit != 0 {
                self.levels[level].occupied &= !bit;
                let lanes = core::mem::take(&mut self.buckets[bucket].lanes);
                for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                    let list = bucket * LANES + lane;
                    if onto == DUE && self.buckets[bucket].count >= RunAhead::WORTHWHILE {
                        let is_behind = !self.lists.is_empty(DUE);
                        self.run_ahead.add(self.lists.both_ends(list), is_behind);
                        self.is_walked = true;
                    }
                    self.splice(list, onto);
                }
            }
            if self.levels[level].live & bit != 0 {
                self.levels[level].live &= !bit;
                self.due_live += core::mem::take(&mut self.buckets[bucket].count) as usize;
            }
        }
    }

    /// Puts a timer onto the list where it belongs.
    #[inline(always)]
    fn put(&mut self, node: WheelRef, deadline: Ns, notes: u64) -> WheelPlace {
        let Some((place, list)) = self.placement(deadline, notes) else {
            return self.put_due(node, WheelPlace::new(self.clk, 0, notes), OVERDUE);
        };
        node.set_place(place.0);
        let was_empty = self.lists.push_back(list, node);
        // What a timer that is on the list has marked need not be marked again.
        if was_empty || self.is_exact {
            self.mark_occupied(place, list);
        }
        if place.is_deferrable() {
            self.deferrable += 1;
            return place;
        }
        let bucket = self.bucket(list / LANES);
        bucket.count += 1;
        if bucket.count == 1 {
            self.mark_live(place);
        }
        place
    }

    /// Puts a timer in line that is due, or was armed for the past.
    #[inline(never)]
    fn put_due(&mut self, node: WheelRef, place: WheelPlace, list: usize) -> WheelPlace {
        node.set_place(place.0);
        self.lists.push_back(list, node);
        let waiting = if place.is_deferrable() { &mut self.deferrable } else { &mut self.due_live };
        *waiting += 1;
        place
    }

    /// Something has been put onto this list.
    fn mark_occupied(&mut self, place: WheelPlace, list: usize) {
        self.bucket(list / LANES).lanes |= (1 | 1 << LANES) << (list % LANES);
        self.level(place.level()).occupied |= 1 << place.slot();
        self.next_mark = self.next_mark.min(place.expiry());
    }

    /// The first timer that is not deferrable has come into this bucket.
    fn mark_live(&mut self, place: WheelPlace) {
        self.level(place.level()).live |= 1 << place.slot();
    }

    #[inline]
    fn bucket(&mut self, bucket: usize) -> &mut Bucket {
        &mut self.buckets[bucket % BUCKETS.next_power_of_two()]
    }

    #[inline]
    fn level(&mut self, level: usize) -> &mut Level {
        &mut self.levels[level % LEVELS.next_power_of_two()]
    }

    /// Takes a pending timer off.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, node: WheelRef) {
        if self.is_walked {
            self.step_aside(node);
        }
        self.uncount(WheelPlace::of(node));
        self.take_off_list(node);
    }

    /// Nobody who walks over timers is to stand on this one, which is about to go.
    #[inline]
    fn step_aside(&mut self, node: WheelRef) {
        self.run_ahead.stop();
        if self.cursor.is_before(node) {
            self.cursor.go_on(&self.lists);
        }
        self.is_walked = self.cursor.is_inside();
    }

    /// Moves everything on a list behind everything on another.
    #[inline]
    fn splice(&mut self, from: usize, onto: usize) {
        self.lists.splice(from, onto);
        self.cursor.list_is_gone(from);
    }

    #[inline]
    fn take_off_list(&mut self, node: WheelRef) {
        if let Some(list) = self.lists.unlink(node)
            && list < DUE
        {
            let number = list / LANES;
            let bucket = self.bucket(number);
            bucket.lanes &= !(1 << (list % LANES));
            if bucket.is_empty() {
                self.level(number / SLOTS).occupied &= !(1 << (number % SLOTS));
            }
        }
    }

    /// Takes the timer that is first in line out of it.
    #[inline]
    fn take_first(&mut self, node: WheelRef) {
        if self.cursor.is_before(node) {
            self.cursor.go_on(&self.lists);
        }
        self.lists.unlink(node);
    }

    /// A timer that has come due is no longer in line.
    #[inline]
    fn uncount_due(&mut self, place: WheelPlace) {
        debug_assert!(place.expiry() <= self.clk, "it is in line before it is due");
        if place.is_deferrable() {
            self.deferrable -= 1;
        } else {
            self.due_live -= 1;
        }
    }

    #[inline]
    fn uncount(&mut self, place: WheelPlace) {
        if place.is_deferrable() {
            self.deferrable -= 1;
            return;
        }
        if place.expiry() <= self.clk {
            self.due_live -= 1;
            return;
        }
        let bucket = self.bucket(place.bucket());
        bucket.count -= 1;
        if bucket.count == 0 {
            self.level(place.level()).live &= !(1 << place.slot());
        }
    }

    /// Puts a timer from the due list, which has been put off or lay beyond the wheel's reach,
    /// where it belongs.
    #[inline(never)]
    fn relocate(&mut self, node: WheelRef, deadline: Ns) {
        let place = WheelPlace::of(node);
        self.uncount_due(place);
        self.take_first(node);
        self.put(node, deadline, place.0 & DEFERRABLE);
        self.relocated += 1;
    }

    /// The earliest bucket that is occupied or live; the bound becomes exact.
    fn next_marked(&mut self) -> u64 {
        self.next_mark = self.earliest(|level| level.occupied | level.live);
        self.next_mark
    }

    /// When the earliest of these buckets expires, in ticks; `u64::MAX` if there is none.
    fn earliest(&self, bitmap_of: impl Fn(&Level) -> u64) -> u64 {
        let mut earliest = u64::MAX;
        for (level, bitmap) in self.levels[..LEVELS].iter().map(bitmap_of).enumerate() {
            if bitmap != 0 {
                // A level's buckets lie one to 64 granules after the one the clock is in.
                let first = (self.clk >> (3 * level)) + 1;
                let ahead = bitmap.rotate_right((first % SLOTS as u64) as u32).trailing_zeros();
                earliest = earliest.min((first + u64::from(ahead)) << (3 * level));
            }
        }
        earliest
    }
}
