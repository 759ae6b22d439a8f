//! `VirtualTime` with one to three bases: pinned and deferrable timers, windows, and callbacks that
//! arm, cancel, drop and restart timers, their own too, and that move the time; beside a list that
//! knows what must come of it.

use crate::bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless::callback::Cancel;
use tickless::driver::CpuId;
use tickless::time::Instant;
use tickless::{Fired, HrTimer, Timeout, Timers, VirtualTime};

/// A century: farther than this nothing is asked of the clock, so that it never ends.
const FAR: u64 = 100 * 365 * 86_400 * 1_000_000_000;
const TIMERS: usize = 24;

enum Timer {
    Coarse(Timeout),
    Precise(HrTimer),
}

/// What the list knows of one timer.
#[derive(Clone, Copy, Default)]
struct Known {
    /// When it may fire and must have fired, if it is armed.
    armed: Option<(u64, u64)>,
    is_deferrable: bool,
    /// Where its callback takes its choices from.
    script: u8,
}

#[derive(Default)]
struct State {
    known: [Known; TIMERS],
    timers: [Option<Arc<Timer>>; TIMERS],
    fired: u64,
    /// How many callbacks stand on each other, because one moves the time.
    depth: u32,
}

#[derive(Clone)]
struct World {
    time: VirtualTime,
    state: Arc<Mutex<State>>,
}

/// Performs `bytes`.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let bases = 1 + bytes.below(3) as u16;
    let time = VirtualTime::with_builder(
        Timers::builder().bases(bases),
        Instant::from_nanos(bytes.number() % FAR),
    );
    let world = World { time, state: Arc::default() };
    while let Some(choice) = bytes.next() {
        let (at, number) = (bytes.below(TIMERS), bytes.number() % FAR);
        match choice % 8 {
            0 => world.make(at, choice, bytes.byte(), bases),
            1 => drop(world.take(at)),
            2 => world.cancel(at),
            3 | 4 => world.advance(number),
            _ => world.start(at, number, bytes.number() % FAR),
        }
    }
    world.advance(FAR);
    let left = std::mem::take(&mut world.lock().timers);
    drop(left);
    assert_eq!(world.time.timers().stats().pending(), 0, "all timers are gone");
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a timer away; it is the caller that drops it, without the lock.
    fn take(&self, at: usize) -> Option<Arc<Timer>> {
        let mut state = self.lock();
        state.known[at].armed = None;
        state.timers[at].take()
    }

    fn timer(&self, at: usize) -> Option<Arc<Timer>> {
        self.lock().timers[at].clone()
    }

    fn make(&self, at: usize, choice: u8, script: u8, bases: u16) {
        drop(self.take(at));
        // The timers' own callbacks hold nothing that keeps them alive.
        let state = Arc::downgrade(&self.state);
        let time = self.time.clone();
        let callback = move |fired: &mut Fired<'_>| {
            let Some(state) = state.upgrade() else { return };
            World { time: time.clone(), state }.fire(at, fired);
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
        state.known[at] = Known { armed: None, is_deferrable, script };
        state.timers[at] = Some(Arc::new(timer));
    }

    fn start(&self, at: usize, after: u64, slack: u64) {
        let Some(timer) = self.timer(at) else { return };
        let now = self.time.now().as_nanos();
        let soft = now.saturating_add(after);
        let (hard, started) = match &*timer {
            // An eighth of the distance and a tick at either end: what a wheel rounds by.
            Timer::Coarse(timer) => {
                let hard = soft.saturating_add(after / 7).saturating_add(2_000_000);
                (hard, timer.start(Duration::from_nanos(after)))
            }
            Timer::Precise(timer) => {
                let hard = soft.saturating_add(slack);
                (hard, timer.start_range(Instant::from_nanos(soft), Instant::from_nanos(hard)))
            }
        };
        assert!(started.is_ok(), "{started:?}");
        self.lock().known[at].armed = Some((soft, hard));
    }

    fn cancel(&self, at: usize) {
        let Some(timer) = self.timer(at) else { return };
        let found = match &*timer {
            Timer::Coarse(timer) => timer.cancel(),
            Timer::Precise(timer) => timer.cancel(),
        };
        let was_armed = self.lock().known[at].armed.take().is_some();
        assert!(
            found == Cancel::Running || (found == Cancel::Pending) == was_armed,
            "{at}: {found:?}"
        );
    }

    fn advance(&self, by: u64) {
        let to = self.time.now().as_nanos().saturating_add(by);
        self.time.advance_to(Instant::from_nanos(to));
        let is_outermost = self.lock().depth == 0;
        // A callback that moves the time may be stood on by others: what they were to do is left.
        if !is_outermost {
            return;
        }
        let now = self.time.now().as_nanos();
        assert!(now >= to, "{now}, told to go to {to}");
        for (at, known) in self.lock().known.iter().enumerate() {
            let Some((_, hard)) = known.armed else { continue };
            assert!(known.is_deferrable || hard > now, "{at}, due at {hard}, is left at {now}");
        }
    }

    fn fire(&self, at: usize, fired: &mut Fired<'_>) {
        let (script, spent, depth) = {
            let mut state = self.lock();
            let armed = state.known[at].armed.take();
            let now = fired.now().as_nanos();
            match armed {
                Some((soft, _)) => assert!(soft <= now, "{at} is early: {soft}, at {now}"),
                None => panic!("{at} fires and is not armed"),
            }
            state.fired += 1;
            state.depth += 1;
            (state.known[at].script, state.fired, state.depth)
        };
        let other = usize::from(script >> 3) % TIMERS;
        // So often, and then no more: else a fuzzer finds timers that arm each other for ever.
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

    /// What the list has to know of a restart from the callback, which counts from the present.
    fn rearmed(&self, at: usize, after: u64) {
        let is_coarse = matches!(self.timer(at).as_deref(), Some(Timer::Coarse(_)));
        let soft = self.time.now().as_nanos().saturating_add(after);
        let rounding = if is_coarse { after / 7 + 2_000_000 } else { 0 };
        let mut state = self.lock();
        // Unless somebody has dropped it meanwhile.
        if state.timers[at].is_some() {
            state.known[at].armed = Some((soft, soft.saturating_add(rounding)));
        }
    }
}
