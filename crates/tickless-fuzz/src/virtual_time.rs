//! A fuzz target for `VirtualTime` with one to three bases (sets of timers, as one for each CPU).
//! It uses pinned and deferrable timers, timers that may fire within a window of time, and
//! callbacks that arm, cancel, drop and restart timers, also their own, and that advance the time.
//! A simple model of the timers predicts every result.

use crate::bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless::callback::Cancel;
use tickless::driver::CpuId;
use tickless::time::Instant;
use tickless::{Fired, HrTimer, Timeout, Timers, VirtualTime};

/// The longest step of the time, a century, so that the clock does not reach its maximum.
const FAR: u64 = 100 * 365 * 86_400 * 1_000_000_000;
const TIMERS: usize = 24;

/// Returns how much later than its deadline a coarse timer may fire: a seventh of `after`, the time
/// from arming to the deadline (the timer wheel's granularity is at most 1/7.7 of it), and one tick
/// of a millisecond at either end of that time.
fn granule(after: u64) -> u64 {
    (after / 7).saturating_add(2_000_000)
}

enum Timer {
    Coarse(Timeout),
    Precise(HrTimer),
}

#[derive(Clone, Copy, Default)]
struct TimerModel {
    /// If the timer is armed: the earliest time at which it may fire, and the time by which it must
    /// have fired.
    armed: Option<(u64, u64)>,
    is_deferrable: bool,
    script: u8,
}

#[derive(Default)]
struct State {
    models: [TimerModel; TIMERS],
    timers: [Option<Arc<Timer>>; TIMERS],
    fired: u64,
    /// The nesting depth of callbacks: a callback that advances the time runs other callbacks.
    depth: u32,
}

#[derive(Clone)]
struct Model {
    time: VirtualTime,
    state: Arc<Mutex<State>>,
}

pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let bases = 1 + bytes.below(3) as u16;
    let time = VirtualTime::with_builder(
        Timers::builder().bases(bases),
        Instant::from_nanos(bytes.number() % FAR),
    );
    let model = Model { time, state: Arc::default() };
    while let Some(choice) = bytes.next() {
        let (at, number) = (bytes.below(TIMERS), bytes.number() % FAR);
        match choice % 8 {
            0 => model.make(at, choice, bytes.byte(), bases),
            1 => drop(model.take(at)),
            2 => model.cancel(at),
            3 | 4 => model.advance(number),
            _ => model.start(at, number, bytes.number() % FAR),
        }
    }
    model.advance(FAR);
    let left = std::mem::take(&mut model.lock().timers);
    drop(left);
    assert_eq!(model.time.timers().stats().pending(), 0, "all timers were dropped");
}

impl Model {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a timer. The caller must drop it without the lock: the drop runs the library's code.
    fn take(&self, at: usize) -> Option<Arc<Timer>> {
        let mut state = self.lock();
        state.models[at].armed = None;
        state.timers[at].take()
    }

    fn timer(&self, at: usize) -> Option<Arc<Timer>> {
        self.lock().timers[at].clone()
    }

    fn make(&self, at: usize, choice: u8, script: u8, bases: u16) {
        drop(self.take(at));
        // A weak reference: the state owns the timer, and the timer owns this callback. With a
        // strong reference this circle would never be freed.
        let state = Arc::downgrade(&self.state);
        let time = self.time.clone();
        let callback = move |fired: &mut Fired<'_>| {
            let Some(state) = state.upgrade() else { return };
            Model { time: time.clone(), state }.fire(at, fired);
        };
        let pin = (choice & 64 != 0).then_some(CpuId(u16::from(choice >> 3) % bases));
        let is_deferrable = choice & 40 == 40;
        let timers = self.time.timers();
        let timer = if choice & 32 == 0 {
            let timer = timers.hrtimer(callback);
            Timer::Precise(if let Some(base) = pin { timer.pinned(base) } else { timer })
        } else {
            let timer = timers.timeout(callback);
            let timer = if is_deferrable { timer.deferrable() } else { timer };
            Timer::Coarse(if let Some(base) = pin { timer.pinned(base) } else { timer })
        };
        let mut state = self.lock();
        state.models[at] = TimerModel { armed: None, is_deferrable, script };
        state.timers[at] = Some(Arc::new(timer));
    }

    fn start(&self, at: usize, after: u64, slack: u64) {
        let Some(timer) = self.timer(at) else { return };
        let now = self.time.now().as_nanos();
        let soft = now.saturating_add(after);
        let (hard, started) = match &*timer {
            Timer::Coarse(timer) => {
                let hard = soft.saturating_add(granule(after));
                (hard, timer.start(Duration::from_nanos(after)))
            }
            Timer::Precise(timer) => {
                let hard = soft.saturating_add(slack);
                (hard, timer.start_range(Instant::from_nanos(soft), Instant::from_nanos(hard)))
            }
        };
        assert!(started.is_ok(), "{started:?}");
        self.lock().models[at].armed = Some((soft, hard));
    }

    fn cancel(&self, at: usize) {
        let Some(timer) = self.timer(at) else { return };
        let found = match &*timer {
            Timer::Coarse(timer) => timer.cancel(),
            Timer::Precise(timer) => timer.cancel(),
        };
        let was_armed = self.lock().models[at].armed.take().is_some();
        assert!(
            found == Cancel::Running || (found == Cancel::Pending) == was_armed,
            "{at}: {found:?}"
        );
    }

    fn advance(&self, by: u64) {
        let to = self.time.now().as_nanos().saturating_add(by);
        self.time.advance_to(Instant::from_nanos(to));
        let is_outermost = self.lock().depth == 0;
        // In a callback this advance is inside another one, which may still have to run the
        // callbacks of expired timers. So check for late timers only outside callbacks.
        if !is_outermost {
            return;
        }
        let now = self.time.now().as_nanos();
        assert!(now >= to, "{now} after an advance to {to}");
        for (at, model) in self.lock().models.iter().enumerate() {
            let Some((_, hard)) = model.armed else { continue };
            assert!(model.is_deferrable || hard > now, "{at}, due at {hard}, is left at {now}");
        }
    }

    fn fire(&self, at: usize, fired: &mut Fired<'_>) {
        let (script, spent, depth) = {
            let mut state = self.lock();
            let armed = state.models[at].armed.take();
            let now = fired.now().as_nanos();
            match armed {
                Some((soft, _)) => assert!(soft <= now, "{at} is early: {soft}, at {now}"),
                None => panic!("{at} fires and is not armed"),
            }
            state.fired += 1;
            state.depth += 1;
            (state.models[at].script, state.fired, state.depth)
        };
        let other = usize::from(script >> 3) % TIMERS;
        // The number of armings in callbacks is limited: timers could arm each other forever.
        if spent < 200 {
            match script % 8 {
                0 => self.start(other, u64::from(script) << 14, 0),
                1 => self.cancel(other),
                2 => drop(self.take(other)),
                3 => {
                    let after = u64::from(script) << 10;
                    self.rearmed(at, after);
                    fired.restart(Duration::from_nanos(after));
                }
                4 if depth < 4 => self.advance(u64::from(script) << 12),
                5 => self.start(other, 0, u64::from(script)),
                6 => self.start(at, u64::from(script) << 12, 1_000),
                _ => {}
            }
        }
        self.lock().depth -= 1;
    }

    /// Records in the model that a callback restarts its timer. The duration counts from the
    /// current time.
    fn rearmed(&self, at: usize, after: u64) {
        let is_coarse = matches!(self.timer(at).as_deref(), Some(Timer::Coarse(_)));
        let soft = self.time.now().as_nanos().saturating_add(after);
        let rounding = if is_coarse { granule(after) } else { 0 };
        let mut state = self.lock();
        // Another callback may have dropped the timer. Then it does not restart.
        if state.timers[at].is_some() {
            state.models[at].armed = Some((soft, soft.saturating_add(rounding)));
        }
    }
}
