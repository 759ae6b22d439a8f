//! The timer inside a future, which wakes the future's task.
//!
//! The task writes the waker, and the driver whose timer fires takes it out, by the protocol in
//! [`super::turns`]. The driver calls the waker between two callbacks or after the last one (see
//! [`super::wakers`]). So a thread that drops an entry while its callback runs waits a few ns only.
//!
//! A sleep is often pushed out, for example an idle timeout by each request. So a pending precise
//! timer stays armed for its old deadline at first. The driver then finds that the timer has a
//! [`Lead`] (is armed ahead of its deadline), and rearms it instead of waking the task.

use super::ambient::{self, Scope};
use super::fired::Fired;
use super::glue::{Glue, Host, Task};
use super::pinned::Pinned;
use super::shared::{Handle, Shared};
use super::turns::{Byte, Lead, Turns};
use crate::platform::coop;
use crate::platform::system_clock::system_now;
use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use tickless_core::bases::{Family, Started};
use tickless_core::link::Timer;
use tickless_core::time::{Ns, Window};

/// The unit of a timer's [`Lead`]: about 4 ms.
const LEAD_NS: u64 = 1 << 22;

/// The bit of a slack that the program has set. Others are the default of the time to sleep.
const CHOSEN: u32 = 1 << 31;

/// A timer that wakes the task that polls it. 96 bytes for a precise timer.
#[repr(C)]
pub(crate) struct Entry<L: Family<Host>> {
    timer: Timer<Host, L>,
    waker: UnsafeCell<Option<Waker>>,
    /// `None` if the system refused the driver threads: polls compare the deadline with the clock.
    shared: Option<Handle>,
    /// In nanoseconds. Only the task writes this. A reset of a timer without a lead writes it after
    /// all steps that can panic. So even after a panic, the deadline of an entry that is marked as
    /// fired has passed.
    deadline: AtomicU64,
    /// Units of 1.024 µs, and [`CHOSEN`].
    slack: Cell<u32>,
    /// Which of the task and the driver is allowed to access the waker.
    turns: Turns<AtomicU8>,
    /// Zero for a coarse timer: its deadline, which its link contains, is moved instead.
    lead: Lead<AtomicU8>,
    stage: Cell<Stage>,
    /// Whether the last poll relied on the deadline scope around it to wake the task.
    waits_for_scope: Cell<bool>,
    pinned: PhantomPinned,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    New,
    /// The timer has been armed before, and is idle now.
    Idle,
    /// The timer has been armed. By now it is pending, its callback runs, or it is idle.
    Armed,
}

// SAFETY: the task can move between threads, and its entry with it. Drivers also access the timer,
// whose type is made for many threads; the atomics; and the waker, which `turns` gives to the task
// or to the driver, never to both.
unsafe impl<L: Family<Host>> Send for Entry<L> {}
// SAFETY: through a shared future, other threads can only read the deadline and whether the timer
// has fired. The cells change only through a `&mut` to the future, or before it is shared.
unsafe impl<L: Family<Host>> Sync for Entry<L> {}

impl<L: Family<Host>> Entry<L> {
    /// Creates an entry that is not armed: its first poll arms it.
    pub(crate) fn new(timers: Option<&Handle>, deadline: Ns, slack: Ns) -> Entry<L> {
        Entry {
            timer: Timer::new(Self::GLUE),
            waker: UnsafeCell::new(None),
            shared: timers.map(Handle::handle),
            deadline: AtomicU64::new(deadline.0),
            slack: Cell::new(slack_units(slack)),
            turns: Turns::new(),
            lead: Lead::new(),
            stage: Cell::new(Stage::New),
            waits_for_scope: Cell::new(false),
            pinned: PhantomPinned,
        }
    }

    /// Chooses the timers of an entry that has none and was not polled. Its deadline is right if it
    /// is on their clock. If the program moves that clock, the deadline is `after` from now.
    #[inline]
    pub(crate) fn place(self: Pin<&mut Self>, timers: Option<&Handle>, after: Ns, slack: Ns) {
        self.slack.set(slack_units(slack));
        if let Some(timers) = timers.filter(|timers| !timers.bases.platform().clock.is_real()) {
            self.set_deadline(timers.now().after(after));
        }
        // SAFETY: the timer stays where it is.
        unsafe { self.get_unchecked_mut() }.shared = timers.map(Handle::handle);
    }

    pub(crate) fn deadline(&self) -> Ns {
        // Relaxed: the driver reads this only after `Lead::close`, whose Acquire orders the reads.
        Ns(self.deadline.load(Ordering::Relaxed))
    }

    fn set_deadline(&self, deadline: Ns) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
    }

    /// Sets by how much the timer is allowed to be late. Applies from the next arming on.
    pub(crate) fn set_slack(&self, slack: Ns) {
        self.slack.set(slack_units(slack) | CHOSEN);
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.turns.has_fired()
    }

    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    /// Returns `Ready` once the deadline has passed; the first poll arms the timer.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.stage.get() == Stage::Armed { self.poll_armed(cx) } else { self.arm(cx) }
    }

    /// Like [`poll`](Self::poll), but if the deadline scope around the poll ends before this
    /// entry's deadline, arms nothing. If the deadline of that scope has passed, returns it.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub(crate) fn poll_in_scope(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Ns>> {
        // Handle the usual case in a scope here, without a function call.
        let waits = ambient::innermost(|scope| {
            scope.deadline <= self.deadline()
                && !scope.has_passed
                && scope.waker.will_wake(cx.waker())
                && scope.has_timers(self.shared())
                && !self.has_fired()
        });
        if waits == Some(true) {
            self.waits_for_scope.set(true);
            return Poll::Pending;
        }
        if waits.is_none() {
            self.waits_for_scope.set(false);
            return self.poll(cx).map(|()| None);
        }
        self.poll_in_other_scope(cx)
    }

    /// Polls an entry inside a deadline scope. Returns the scope's deadline if it has passed.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(never)]
    fn poll_in_other_scope(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Ns>> {
        let Some((deadline, has_passed)) = self.earlier_scope(cx.waker()) else {
            self.waits_for_scope.set(false);
            return self.poll(cx).map(|()| None);
        };
        // An entry that is first polled after the scope's deadline stays pending, and the scope
        // ends. Otherwise a loop that retries after each timeout would never leave its poll.
        if has_passed && self.waits_for_scope.get() {
            return Poll::Ready(Some(deadline));
        }
        self.waits_for_scope.set(!has_passed);
        Poll::Pending
    }

    /// Returns the deadline of the scope around the current poll, and whether it has passed, if the
    /// scope's timer wakes `waker` no later than this entry's timer would. Returns `None` for an
    /// executor inside of the scope that polls with its own wakers: it can outlive the scope.
    #[inline]
    fn earlier_scope(&self, waker: &Waker) -> Option<(Ns, bool)> {
        let earlier = ambient::innermost(|scope| {
            let is_earlier = scope.deadline <= self.deadline()
                && scope.waker.will_wake(waker)
                && scope.is_on_clock_of(self.shared())
                && !self.has_fired();
            is_earlier.then_some((scope.deadline, scope.has_passed))
        });
        earlier.flatten()
    }

    /// Returns the scope that polls its future with this waker and ends when this entry's timer
    /// fires. Returns `None` if the scope around it ends earlier, and is used instead.
    #[inline]
    pub(crate) fn scope<'a>(&'a self, waker: &'a Waker) -> Option<Scope<'a>> {
        if self.earlier_scope(waker).is_some() {
            return None;
        }
        let (deadline, timers) = (self.deadline(), self.shared.as_ref());
        let earliest = ambient::innermost(|outer| {
            if outer.is_on_clock_of(self.shared()) {
                outer.earliest.min(deadline)
            } else {
                deadline
            }
        });
        let (earliest, has_passed) = (earliest.unwrap_or(deadline), self.has_fired());
        Some(Scope { deadline, earliest, has_passed, timers, slack: self.slack(), waker })
    }

    /// Polls an armed entry: stores the waker unless the timer has fired.
    #[inline(never)]
    fn poll_armed(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let entry = self.into_ref();
        let waits = !entry.has_fired() && entry.register(cx.waker());
        if waits { Poll::Pending } else { coop::proceed(cx) }
    }

    /// Arms the timer for the task that polls, unless the deadline has passed.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(never)]
    fn arm(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let entry = self.into_ref();
        let Some(timer) = entry.timer() else { return entry.poll_by_clock(cx) };
        if entry.has_fired() {
            return coop::proceed(cx);
        }
        let Some(now) = timer.shared().time_before::<L>(entry.deadline()) else {
            entry.turns.set_fired();
            return coop::proceed(cx);
        };
        // SAFETY: the timer is not armed, so no driver accesses the waker.
        unsafe { *entry.waker.get() = Some(cx.waker().clone()) };
        // In the child of a fork, arming does nothing, so no driver wakes the task there.
        if entry.stage.replace(Stage::Armed) == Stage::New {
            // SAFETY: the timer has not been used before, and only its task uses it.
            unsafe { timer.start_new(entry.window(entry.deadline()), now) };
        } else {
            let _ = timer.start(entry.window(entry.deadline()), now);
        }
        timer.label_as_polled();
        Poll::Pending
    }

    /// Changes the deadline, whether the entry has fired or not. An armed entry stays armed.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(always)]
    pub(crate) fn reset(self: Pin<&mut Self>, deadline: Ns, now: Ns) {
        let entry = self.into_ref();
        if let Some(timer) = entry.timer() {
            if entry.stage.get() == Stage::Armed && entry.push_out(&timer, deadline, now) {
                timer.label_as_polled();
                return;
            }
        }
        entry.reset_locked(deadline, now);
    }

    /// Makes the deadline of a pending timer later without taking a lock. Returns `false` if that
    /// requires the lock, or if the timer has fired.
    ///
    /// A precise timer stays armed for an earlier time, and then costs its driver a wakeup. So this
    /// also returns `false` if that time is in the first half of the time to the new deadline, or
    /// more than a second before the new deadline. A timer that is pushed out often is therefore
    /// rearmed twice in the time of its timeout, or once a second, and never expires.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(always)]
    fn push_out(&self, timer: &Pinned<&Shared, L>, deadline: Ns, now: Ns) -> bool {
        if L::COARSE {
            let is_done = timer.push_out(self.window(deadline), now);
            if is_done {
                self.set_deadline(deadline);
            }
            return is_done;
        }
        let Some(later) = deadline.0.checked_sub(self.deadline().0) else { return false };
        let lead = self.lead.get();
        let units = u64::from(lead) + later / LEAD_NS + 1;
        // The new lead is too large, or the driver has closed the old one (the largest value).
        if units >= u64::from(Lead::<AtomicU8>::CLOSED) {
            return false;
        }
        let armed = deadline.0.saturating_sub(units * LEAD_NS);
        if units * LEAD_NS > armed.saturating_sub(now.0) {
            return false;
        }
        timer.push_out_by(|timer| {
            // Sets that push out eagerly fire timers in the order of arming: they rearm the timer.
            timer.shared().bases.pushes_out_lazily() && {
                self.set_deadline(deadline);
                self.lead.replace(lead, units as u8)
            }
        })
    }

    /// Changes the deadline where `push_out` cannot. A timer that has fired counts as new again.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(never)]
    fn reset_locked(self: Pin<&Self>, deadline: Ns, now: Ns) {
        // A sleep of an hour that is reset to 10 ms must not be late by the slack of an hour.
        if let Some(shared) = self.shared().filter(|_| self.slack.get() & CHOSEN == 0) {
            self.slack.set(slack_units(shared.default_slack(deadline.since(now))));
        }
        if let Some(timer) = self.timer().filter(|_| self.stage.get() == Stage::Armed) {
            let window = self.window(deadline);
            let start = || timer.start(window, now);
            let lead = self.lead.get();
            if (1..Lead::<AtomicU8>::CLOSED).contains(&lead) {
                // A driver that finds the lead reads this deadline, and rearms the timer for it.
                self.set_deadline(deadline);
            }
            let mut is_armed = !self.has_fired() && start() == Ok(Started::Pending);
            if !is_armed {
                // Wait for a driver that is perhaps in the callback. If that driver has found the
                // lead, it has not woken the task, so the timer is armed again here.
                timer.disarm();
                is_armed = !self.has_fired() && start().is_ok();
            }
            if is_armed {
                self.set_deadline(deadline);
                if lead > 0 {
                    self.lead.replace(lead, 0);
                }
                timer.label_as_polled();
                return;
            }
            self.stage.set(Stage::Idle);
        }
        self.set_deadline(deadline);
        self.lead.reset();
        self.turns.reset();
    }

    fn slack(&self) -> Ns {
        Ns(u64::from(self.slack.get() & !CHOSEN) << 10)
    }

    fn window(&self, deadline: Ns) -> Window {
        if L::COARSE {
            return Window::at(deadline);
        }
        Window::new(deadline, deadline.after(self.slack()))
    }

    /// Disarms the timer of an entry that has been armed and is dropped.
    #[inline(never)]
    fn disarm(&mut self) {
        // SAFETY: an entry that was armed was pinned, so it has not moved since.
        let entry = unsafe { Pin::new_unchecked(&*self) };
        if let Some(timer) = entry.timer() {
            timer.disarm();
        }
    }

    /// Stores `waker`, to be woken at the deadline. Returns `false` if the timer has fired.
    fn register(self: Pin<&Self>, waker: &Waker) -> bool {
        self.turns.register(|| {
            // SAFETY: while this task registers, no driver accesses the waker.
            let slot = unsafe { &mut *self.waker.get() };
            match slot {
                Some(old) if old.will_wake(waker) => {}
                _ => *slot = Some(waker.clone()),
            }
        })
    }

    /// Polls an entry for which the system refused the driver threads: compares the deadline with
    /// the clock, and asks to be polled again.
    #[cold]
    fn poll_by_clock(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.deadline() <= system_now() {
            self.turns.set_fired();
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn timer(self: Pin<&Self>) -> Option<Pinned<&Shared, L>> {
        let entry = self.get_ref();
        // SAFETY: the entry is pinned, so it stays where it is until it is dropped, which disarms
        // it first.
        let pin = |shared| unsafe { Pinned::new(NonNull::from(entry).cast(), shared) };
        entry.shared().map(pin)
    }

    const GLUE: Task = &Glue::embedded(Self::call).labelled(Self::label);

    fn label() -> &'static str {
        if L::COARSE { "tickless::future::CoarseSleep" } else { "tickless::future::Sleep" }
    }

    /// # Safety
    /// `node` points to a live `Entry` of this type.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: the caller promises a live entry, and a thread that drops it waits until this has
        // returned.
        let entry = unsafe { node.cast::<Self>().as_ref() };
        if !L::COARSE && !entry.lead.close() {
            let Window { soft, hard } = fired.window();
            let deadline = entry.deadline();
            fired.restart_window(Window::new(deadline, deadline.after(hard.since(soft))));
            return;
        }
        // SAFETY: `fire` calls this only when no task accesses the waker.
        let taken = entry.turns.fire(|| unsafe { (*entry.waker.get()).take() });
        if let Some(waker) = taken.flatten() {
            fired.wake_later(waker);
        }
    }
}

impl<L: Family<Host>> Drop for Entry<L> {
    #[inline]
    fn drop(&mut self) {
        if self.stage.get() == Stage::Armed {
            self.disarm();
        }
    }
}

fn slack_units(slack: Ns) -> u32 {
    (slack.0 >> 10).min(u64::from(CHOSEN - 1)) as u32
}

impl Byte for AtomicU8 {
    #[inline]
    fn new(value: u8) -> AtomicU8 {
        AtomicU8::new(value)
    }

    #[inline]
    fn load(&self, order: Ordering) -> u8 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u8, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn swap(&self, value: u8, order: Ordering) -> u8 {
        self.swap(value, order)
    }

    #[inline]
    fn replace(&self, current: u8, new: u8, success: Ordering, failure: Ordering) -> bool {
        self.compare_exchange(current, new, success, failure).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::VirtualTime;
    use core::pin::{Pin, pin};
    use core::ptr::null;
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
    use core::time::Duration;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::task::Wake;

    struct Counts(AtomicU64);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A waker that panics when it is cloned while `PANICS` is set.
    fn panics_when_cloned() -> Waker {
        const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, |_| (), |_| (), |_| ());
        fn clone(_: *const ()) -> RawWaker {
            assert!(!PANICS.load(Ordering::SeqCst), "a waker panics in its clone");
            RawWaker::new(null(), &VTABLE)
        }
        // SAFETY: no function of the table uses the pointer.
        unsafe { Waker::from_raw(RawWaker::new(null(), &VTABLE)) }
    }
    static PANICS: AtomicBool = AtomicBool::new(false);

    /// Goal: W1 (never early), for a timer that is pushed out without a lock.
    #[test]
    fn a_driver_rearms_a_timer_that_was_pushed_out() {
        let timers = crate::Timers::builder().bases(1).start().unwrap();
        let counts = Arc::new(Counts(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&counts));
        let cx = &mut Context::from_waker(&waker);
        let (now, hour, ms) = (timers.now(), Duration::from_secs(3_600), Duration::from_millis);
        let mut sleep = pin!(timers.sleep(hour));
        assert!(sleep.as_mut().poll(cx).is_pending());
        sleep.as_mut().reset_from(now, hour + ms(50));
        assert_ne!(sleep.entry.lead.get(), 0, "it is rearmed under the lock");
        sleep.as_mut().reset_from(now, ms(500));
        sleep.as_mut().reset_from(now, ms(1_000));
        assert_eq!(sleep.entry.lead.get(), 0, "it would expire in the first half of its time");
        if cfg!(miri) {
            return; // Its clock counts steps.
        }
        sleep.as_mut().reset(ms(300));
        sleep.as_mut().reset(ms(440)); // The slack is 50 ms.
        while counts.0.load(Ordering::SeqCst) == 0 {
            std::thread::park_timeout(ms(1));
        }
        assert!(timers.now() >= sleep.deadline() && sleep.as_mut().poll(cx).is_ready());
        assert_eq!(counts.0.load(Ordering::SeqCst), 1, "the task is woken at the deadline only");
        sleep.as_mut().reset(hour);
        assert!(!sleep.is_elapsed() && sleep.as_mut().poll(cx).is_pending());
    }

    /// Goal: W1 (never early).
    #[test]
    fn a_waker_that_panics_in_its_clone_makes_no_sleep_early() {
        const SECOND: Duration = Duration::from_secs(1);
        let woken = Arc::new(Counts(AtomicU64::new(0)));
        let (good, bad) = (Waker::from(Arc::clone(&woken)), panics_when_cloned());
        for polled_before in [0, 1, 2] {
            let time = VirtualTime::new();
            let mut sleep = pin!(time.timers().sleep(SECOND));
            let mut poll = |waker: &Waker| {
                let sleep: Pin<&mut dyn Future<Output = ()>> = sleep.as_mut();
                sleep.poll(&mut Context::from_waker(waker))
            };
            for _ in 0..polled_before {
                assert_eq!(poll(&good), Poll::Pending);
            }
            PANICS.store(true, Ordering::SeqCst);
            assert!(catch_unwind(AssertUnwindSafe(|| poll(&bad))).is_err());
            PANICS.store(false, Ordering::SeqCst);
            assert_eq!(poll(&bad), Poll::Pending, "early");
            assert_eq!(poll(&good), Poll::Pending, "early");
            let before = woken.0.load(Ordering::SeqCst);
            time.advance(SECOND);
            assert_eq!(
                (woken.0.load(Ordering::SeqCst), poll(&good)),
                (before + 1, Poll::Ready(()))
            );
        }
    }
}
