//! A timer inside a future: pinned, without an allocation of its own, firing into a waker.
//!
//! The task that owns the entry writes the waker, and the driver whose timer fires takes it out:
//! [`super::turns`] says whose turn it is.
//!
//! # Waking
//!
//! The driver only takes the waker out while it is in the callback, and wakes between callbacks
//! or when its batch is over: see [`super::wakers`]. So dropping an entry whose callback runs
//! waits for a matter of nanoseconds.

use super::fired::Fired;
use super::frame;
use super::glue::{Glue, Host, Task};
use super::pinned::Pinned;
use super::shared::{Handle, Shared};
use super::turns::{Byte, Turns};
use super::wakers::Pause;
use crate::platform::system_clock::system_now;
use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use core::task::{Context, Poll, Waker};
use tickless_core::bases::{Family, Options, Started};
use tickless_core::link::Timer;
use tickless_core::time::{Ns, Window};

/// A timer that wakes the task that polls it. 96 bytes for the precise family.
#[repr(C)]
pub(crate) struct Entry<L: Family<Host>> {
    timer: Timer<Host, L>,
    waker: UnsafeCell<Option<Waker>>,
    /// `None` if timers could not be started; then whoever polls it looks at the clock.
    shared: ManuallyDrop<Option<Handle>>,
    /// When it is to fire, at the earliest.
    deadline: Cell<Ns>,
    /// Units of 1.024 µs.
    slack: Cell<u32>,
    /// Who may touch the waker.
    turns: Turns<AtomicU8>,
    /// Whether it has been armed.
    stage: Cell<Stage>,
    /// Does it keep the timers running? Those of the process run for ever.
    keeps: bool,
    pinned: PhantomPinned,
}

/// What has been done with an entry's timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing yet.
    New,
    /// It was armed once, and is idle for certain.
    Idle,
    /// It has been armed since it was idle for certain.
    Armed,
}

// SAFETY: the task may move between threads, its entry with it as long as it is not pinned;
// afterwards what is shared with drivers is the timer, which is made for that, and the waker, with
// its turns.
unsafe impl<L: Family<Host>> Send for Entry<L> {}
// SAFETY: a shared entry can only be asked for its deadline, which only `&mut` ways change.
unsafe impl<L: Family<Host>> Sync for Entry<L> {}

impl<L: Family<Host>> Entry<L> {
    /// An entry that is not armed: it will be when it is polled.
    pub(crate) fn new(timers: From<'_>, deadline: Ns, slack: Ns) -> Entry<L> {
        let (shared, keeps) = match timers {
            From::Process(handle) => {
                // SAFETY: a second owner of a handle that is never dropped, and is not dropped
                // itself. (Counting it would be a third of what a sleep costs.)
                (handle.map(|handle| unsafe { core::ptr::read(handle) }), false)
            }
            From::Timers(handle) => (Some(handle.clone()), true),
        };
        Entry {
            timer: Timer::new(Self::GLUE),
            waker: UnsafeCell::new(None),
            shared: ManuallyDrop::new(shared),
            deadline: Cell::new(deadline),
            slack: Cell::new(slack_units(slack)),
            turns: Turns::new(),
            stage: Cell::new(Stage::New),
            keeps,
            pinned: PhantomPinned,
        }
    }

    /// When it is to fire, at the earliest.
    pub(crate) fn deadline(&self) -> Ns {
        self.deadline.get()
    }

    /// By how much it may be late, from the next time on that it is armed.
    pub(crate) fn set_slack(&self, slack: Ns) {
        self.slack.set(slack_units(slack));
    }

    /// Has it fired?
    pub(crate) fn has_fired(&self) -> bool {
        self.turns.has_fired()
    }

    /// The timers it belongs to.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    /// Ready once the deadline has passed; arms the timer the first time.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.stage.get() == Stage::Armed { self.look(cx) } else { self.arm(cx) }
    }

    /// Has the one that is armed fired?
    #[inline(never)]
    fn look(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let entry = self.into_ref();
        let waits = !entry.has_fired() && entry.register(cx.waker());
        if waits { Poll::Pending } else { Poll::Ready(()) }
    }

    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(never)]
    fn arm(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let entry = self.into_ref();
        let Some(timer) = entry.timer() else { return entry.poll_by_clock(cx) };
        if entry.has_fired() {
            return Poll::Ready(());
        }
        let now = timer.shared().now();
        if entry.deadline() <= now {
            entry.turns.set_fired();
            return Poll::Ready(());
        }
        // SAFETY: the timer is not armed, so no driver looks at the waker.
        unsafe { *entry.waker.get() = Some(cx.waker().clone()) };
        // In a forked child it is refused, and nothing wakes the task.
        if entry.stage.replace(Stage::Armed) == Stage::New {
            // SAFETY: it has done nothing yet, and its task alone does anything with it.
            unsafe { timer.start_new(entry.window(), now) };
        } else {
            let _ = timer.start(entry.window(), now, Options::default());
        }
        timer.label_as_polled();
        Poll::Pending
    }

    /// Sets another deadline, whether it has fired or not. If it is armed it stays so; to make a
    /// coarse one later then takes a compare-and-swap.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(always)]
    pub(crate) fn reset(self: Pin<&mut Self>, deadline: Ns, now: Ns) {
        let entry = self.into_ref();
        entry.deadline.set(deadline);
        if let Some(timer) = entry.timer()
            && entry.stage.get() == Stage::Armed
            // One that has fired is not pending.
            && timer.push_out(entry.window(), now)
        {
            timer.label_as_polled();
            return;
        }
        entry.reset_anew(now);
    }

    /// The same for one that cannot be put off where it is.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(never)]
    fn reset_anew(self: Pin<&Self>, now: Ns) {
        if let Some(timer) = self.timer()
            && self.stage.get() == Stage::Armed
        {
            if !self.has_fired()
                && timer.start(self.window(), now, Options::default()) == Ok(Started::Pending)
            {
                timer.label_as_polled();
                return;
            }
            // It has fired or is about to: a driver may be in its callback just now.
            timer.withdraw();
            self.stage.set(Stage::Idle);
        }
        self.turns.reset();
    }

    fn window(&self) -> Window {
        let deadline = self.deadline();
        if L::COARSE {
            return Window::new(deadline, deadline);
        }
        Window::new(deadline, deadline.after(Ns(u64::from(self.slack.get()) << 10)))
    }

    /// Leaves the waker to be woken. False if the timer has fired by now.
    fn register(self: Pin<&Self>, waker: &Waker) -> bool {
        self.turns.register(|| {
            // SAFETY: while this task is registering no driver touches the waker.
            let slot = unsafe { &mut *self.waker.get() };
            match slot {
                Some(old) if old.will_wake(waker) => {}
                _ => *slot = Some(waker.clone()),
            }
        })
    }

    /// Without timers: looks at the clock, and asks to be polled again.
    #[cold]
    fn poll_by_clock(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.deadline() <= system_now() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The timer, if it can be armed at all.
    fn timer(self: Pin<&Self>) -> Option<Pinned<&Shared, L>> {
        let entry = self.get_ref();
        // SAFETY: the entry is pinned, so it stays where it is until it is dropped, and that
        // disarms it first.
        let pin = |shared| unsafe { Pinned::new(NonNull::from(entry).cast(), shared) };
        entry.shared().map(pin)
    }

    const GLUE: Task = &Glue::embedded(Self::call).labelled(Self::label);

    fn label() -> &'static str {
        if L::COARSE { "tickless::future::CoarseSleep" } else { "tickless::future::Sleep" }
    }

    /// # Safety
    /// `node` is a live entry of this family.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised: who drops the entry waits for this to end.
        let entry = unsafe { node.cast::<Self>().as_ref() };
        // SAFETY: now the waker is this driver's.
        let taken = entry.turns.fire(|| unsafe { (*entry.waker.get()).take() });
        if let Some(waker) = taken.flatten()
            && fired.wake_later(waker) == Pause::Yes
        {
            entry.have_it_pause();
        }
    }

    /// Inside its callback: has the batch that this is in pause after it.
    #[cold]
    fn have_it_pause(&self) {
        if let (Some(shared), Some(callback)) = (self.shared(), frame::innermost()) {
            shared.bases.pause_after(callback.cpu, callback.runner);
        }
    }
}

impl<L: Family<Host>> Drop for Entry<L> {
    fn drop(&mut self) {
        // SAFETY: an entry that was armed was pinned, and what is pinned is dropped in place.
        let entry = unsafe { Pin::new_unchecked(&*self) };
        if let Some(timer) = entry.timer()
            && entry.stage.get() == Stage::Armed
        {
            timer.disarm();
        }
        if self.keeps {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.shared) };
        }
    }
}

/// The timers that an entry is to belong to.
pub(crate) enum From<'a> {
    /// Those that run until the process ends; `None` if they could not be started.
    Process(Option<&'static Handle>),
    /// These, which it keeps running.
    Timers(&'a Handle),
}

fn slack_units(slack: Ns) -> u32 {
    u32::try_from(slack.0 >> 10).unwrap_or(u32::MAX)
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

    /// Counts wakeups.
    struct Counts(AtomicU64);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A waker that panics when it is cloned while `PANICS` says so.
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

    /// Goal: W1 (never early): a sleep whose waker panics when it is cloned, in whichever poll, is
    /// neither ready nor lost.
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
