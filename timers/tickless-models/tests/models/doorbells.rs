//! The bells by which a driver and a program's loop learn that the next event is earlier now,
//! compiled from the library's file over the checkers' words. If a ring is lost a thread sleeps for
//! ever, which the checkers report.
//!
//! Loom supports sequential consistency for fences only. So sequentially consistent accesses have a
//! fence here, in either of the two places where compilers put it. Each place hides other bugs:
//! where loads have the fences, a store that is too weak is followed by one all the same.
//!
//! Stores are swaps here. Loom orders the writes of a word only by the happens-before relation, so
//! a compare-exchange may be ordered apart from the write that it read: the zero that a late ringer
//! writes over the number of one sleep may seem newer than the number of the next sleep, which C++
//! and Rust forbid. With plain stores loom would report a lost wakeup that cannot occur; a swap is
//! ordered after the write that it reads.

#[path = "../../../tickless/src/platform/device/bell.rs"]
mod bell;

use super::exploring::{Depth, explore};
use super::stage::{CPU0, CPU1};
use crate::checker::{CheckedLock, CheckedParking, CheckedWord, Thread, fence, go_to, share};
use bell::{DriverBell, LoopBell};
use std::sync::Arc;
use tickless_core::platform::{Lock, Ordering, ParkingWord, Word};
use tickless_core::time::Ns;

const BEFORE_LOADS: u8 = 0;
const AFTER_STORES: u8 = 1;

struct Fenced<const PLACE: u8>(CheckedWord);

impl<const PLACE: u8> Fenced<PLACE> {
    fn fence(place: u8, order: Ordering) {
        if place == PLACE && order == Ordering::SeqCst {
            fence();
        }
    }
}

impl<const PLACE: u8> Default for Fenced<PLACE> {
    fn default() -> Self {
        Fenced(CheckedWord::new(0))
    }
}

impl<const PLACE: u8> Word for Fenced<PLACE> {
    fn new(value: u64) -> Self {
        Fenced(CheckedWord::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        Self::fence(BEFORE_LOADS, order);
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.swap(value, order);
        Self::fence(AFTER_STORES, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        Self::fence(BEFORE_LOADS, success);
        let found = self.0.compare_exchange(current, new, success, failure);
        Self::fence(AFTER_STORES, success);
        found
    }

    fn add(&self, value: u64, order: Ordering) -> u64 {
        Self::fence(BEFORE_LOADS, order);
        let before = self.0.add(value, order);
        Self::fence(AFTER_STORES, order);
        before
    }
}

/// The deadlines that are armed. The driver or loop has finished when it knows the nearer one.
const FAR: Ns = Ns(20);
const NEAR: Ns = Ns(10);
/// They are armed by two threads, or by one, the nearer one last.
const BY_TWO: &[&[Ns]] = &[&[FAR], &[NEAR]];
const BY_ONE: &[&[Ns]] = &[&[FAR, NEAR]];

#[derive(Default)]
struct Base {
    pending: Vec<Ns>,
    armed: Option<Ns>,
}

struct Scene<B> {
    base: CheckedLock<Base>,
    bell: B,
    parking: CheckedParking,
    called: CheckedLock<bool>,
}

impl<B: Send + Sync + 'static> Scene<B> {
    fn new(bell: B) -> Arc<Self> {
        let base = CheckedLock::new(Base::default());
        Arc::new(Scene {
            base,
            bell,
            parking: CheckedParking::new(),
            called: CheckedLock::new(false),
        })
    }

    /// Arms a timer. If it is the earliest, programs the device under the lock, and rings after it.
    fn arm(&self, at: Ns, program: impl FnOnce(&B), ring: impl FnOnce(&B)) {
        let mut base = self.base.lock();
        base.pending.push(at);
        let is_earliest = base.armed.is_none_or(|armed| at < armed);
        if is_earliest {
            base.armed = Some(at);
            program(&self.bell);
        }
        drop(base);
        if is_earliest {
            ring(&self.bell);
        }
    }

    fn armers(
        self: &Arc<Self>,
        deadlines: &[&'static [Ns]],
        arm: impl Fn(&Self, Ns) + Clone + Send + 'static,
    ) -> Vec<Thread> {
        let armer = |&deadlines: &&'static [Ns]| {
            let arm = arm.clone();
            share(CPU1, self, move |scene| deadlines.iter().for_each(|&at| arm(scene, at)))
        };
        deadlines.iter().map(armer).collect()
    }

    /// Handles the base, on which no timer is due, and programs its device for the next deadline.
    fn handle(&self, program: impl FnOnce(&B, Ns)) {
        let mut base = self.base.lock();
        base.armed = base.pending.iter().min().copied();
        if let Some(next) = base.armed {
            program(&self.bell, next);
        }
    }
}

type Driven<const PLACE: u8> = Scene<DriverBell<Fenced<PLACE>, Fenced<PLACE>>>;

impl<const PLACE: u8> Driven<PLACE> {
    fn arm_and_ring(&self, at: Ns) {
        self.arm(at, |bell| bell.set(at), |bell| bell.ring(|_| self.parking.unpark()));
    }

    fn drive(&self, until: Ns) {
        let mut asleep_for = None;
        while asleep_for != Some(until) {
            self.bell.quiet();
            self.handle(|bell, next| {
                bell.set(next);
                bell.ring(|_| unreachable!("the driver is awake"));
            });
            let wait = |rings: &Fenced<PLACE>, heard, deadline| {
                asleep_for = Some(deadline);
                if deadline != until {
                    self.parking.park(|| rings.count(Ordering::Relaxed) == heard);
                }
            };
            self.bell.sleep(|deadline| deadline, || false, wait);
        }
    }
}

fn driver<const PLACE: u8>(deadlines: &[&'static [Ns]]) {
    let scene = Driven::<PLACE>::new(DriverBell::default());
    let armers = scene.armers(deadlines, Driven::arm_and_ring);
    go_to(CPU0);
    scene.drive(NEAR);
    armers.into_iter().for_each(Thread::join);
}

/// Two threads arm timers of a base without driver; the first ring makes a third thread drive.
fn driver_that_is_started<const PLACE: u8>() {
    let scene = Driven::<PLACE>::new(DriverBell::without_driver());
    let word = || Arc::new(CheckedWord::new(0));
    let (is_driven, calls, starter) = (word(), word(), Arc::new(CheckedParking::new()));
    let by_armer = (Arc::clone(&is_driven), Arc::clone(&calls), Arc::clone(&starter));
    let armers = scene.armers(BY_TWO, move |scene: &Driven<PLACE>, at| {
        let (is_driven, calls, starter) = &by_armer;
        let wake = |_: &Fenced<PLACE>| {
            if is_driven.load(Ordering::Relaxed) != 0 {
                return scene.parking.unpark();
            }
            calls.add(1, Ordering::Release);
            starter.unpark();
        };
        scene.arm(at, |bell| bell.set(at), |bell| bell.ring(wake));
    });
    go_to(CPU0);
    loop {
        let seen = calls.load(Ordering::Acquire);
        if scene.bell.rings().count(Ordering::SeqCst) != 0 {
            break;
        }
        starter.park(|| calls.load(Ordering::Relaxed) == seen);
    }
    is_driven.store(1, Ordering::Relaxed);
    scene.bell.begin();
    scene.drive(NEAR);
    armers.into_iter().for_each(Thread::join);
}

type Looped<const PLACE: u8> = Scene<LoopBell<Fenced<PLACE>>>;

impl<const PLACE: u8> Looped<PLACE> {
    fn arm_and_ring(&self, at: Ns) {
        let call = |_| {
            *self.called.lock() = true;
            self.parking.unpark();
        };
        self.arm(at, |bell| bell.set(at), |bell| _ = bell.ring(call));
    }

    fn turn(&self, until: Ns) {
        loop {
            self.bell.begin_run();
            self.bell.quiet();
            self.handle(|bell, next| {
                bell.set(next);
                bell.ring(|_| unreachable!("the loop runs timers"));
            });
            if self.bell.begin_wait() == until {
                return;
            }
            self.parking.park(|| !*self.called.lock());
            *self.called.lock() = false;
        }
    }
}

fn own_loop<const PLACE: u8>(deadlines: &[&'static [Ns]]) {
    let scene = Looped::<PLACE>::new(LoopBell::new());
    let armers = scene.armers(deadlines, Looped::arm_and_ring);
    go_to(CPU0);
    scene.turn(NEAR);
    armers.into_iter().for_each(Thread::join);
}

#[test]
fn no_ring_is_lost() {
    fn at<const PLACE: u8>() {
        let (full, less) = (Depth::full(), Depth::full().shallower());
        explore("two ring for a driver", less, || driver::<PLACE>(BY_TWO));
        explore("a driver is rung twice", full, || driver::<PLACE>(BY_ONE));
        explore("a driver is started", less, driver_that_is_started::<PLACE>);
    }
    at::<BEFORE_LOADS>();
    at::<AFTER_STORES>();
}

#[test]
fn no_call_is_lost() {
    fn at<const PLACE: u8>() {
        explore("two call a loop", Depth::full().shallower(), || own_loop::<PLACE>(BY_TWO));
        explore("a loop is called twice", Depth::full(), || own_loop::<PLACE>(BY_ONE));
    }
    at::<BEFORE_LOADS>();
    at::<AFTER_STORES>();
}
