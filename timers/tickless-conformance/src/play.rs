//! Plays a history on the timers under test, and on the judge, which knows what they must do.

use crate::fault::Fault;
use crate::history::{Op, one_tick};
use crate::judge::Judge;
use crate::timers::{Cancel, NextEvent, Timers};
use core::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A driver counts as stuck after this many calls of `advance` in a row that fire nothing. A wheel
/// that moves timers from level to level can need one call for each level, for each timer.
const ROUNDS: u32 = 10_000;

pub(crate) type Calls = RefCell<Vec<String>>;

/// Plays `ops`, then moves time until all timers have fired. Returns the first broken promise.
pub fn play<T: Timers>(ops: &[Op]) -> Result<(), Fault> {
    play_and_record::<T>(ops, None)
}

/// Plays a history on new timers. A panic is a fault too. `calls` receives the calls as code.
pub(crate) fn play_and_record<T: Timers>(ops: &[Op], calls: Option<&Calls>) -> Result<(), Fault> {
    catch_unwind(AssertUnwindSafe(|| {
        let mut player = Player::<T>::new(calls);
        ops.iter().try_for_each(|op| player.apply(*op))?;
        player.finish()
    }))
    .unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Fault::Panicked { message })
    })
}

struct Player<'a, T> {
    timers: T,
    state: RefCell<State<'a, T>>,
}

struct State<'a, T> {
    judge: Judge<T>,
    calls: Option<&'a Calls>,
    /// Operations that callbacks will perform, each with the key of the timer with this callback.
    reactions: Vec<(u32, Op)>,
    fault: Option<Fault>,
}

impl<'a, T: Timers> Player<'a, T> {
    fn new(calls: Option<&'a Calls>) -> Player<'a, T> {
        let state = State { judge: Judge::new(), calls, reactions: Vec::new(), fault: None };
        Player { timers: T::new(), state: RefCell::new(state) }
    }

    fn apply(&mut self, op: Op) -> Result<(), Fault> {
        match op {
            Op::Advance { by } => self.advance(self.now().saturating_add(by))?,
            Op::Sleep => self.sleep()?,
            Op::CancelInCallback { key, .. } | Op::ArmInCallback { key, .. } => {
                self.state.get_mut().reactions.push((key, op));
            }
            _ => self.state.get_mut().change(&mut self.timers, op, None)?,
        }
        self.check_next_event()
    }

    fn now(&self) -> u64 {
        self.state.borrow().judge.now
    }

    /// Moves time to `now`. Fails if a timer that must fire by then has not fired.
    fn advance(&mut self, now: u64) -> Result<(), Fault> {
        let state = &self.state;
        state
            .borrow()
            .record(None, || format!("timers.advance({now}, &mut |_, key| fired.push(key));"));
        state.borrow_mut().judge.advance(now);
        self.timers.advance(now, &mut |timers, key| state.borrow_mut().fire(timers, key));
        if let Some(fault) = self.state.get_mut().fault.take() {
            return Err(fault);
        }
        match self.state.get_mut().judge.overdue() {
            None => Ok(()),
            Some((key, last)) => Err(self.late_or_lost(key, last)),
        }
    }

    /// Moves time on, to learn whether a timer that did not fire is late or lost.
    fn late_or_lost(&mut self, key: u32, last: u64) -> Fault {
        let mut step = T::GRANULARITY.max(1);
        let mut now = self.now();
        for _ in 0..64 {
            now = now.saturating_add(step).min(T::HORIZON);
            step = step.saturating_mul(2);
            let mut has_fired = false;
            self.timers.advance(now, &mut |_, fired| has_fired |= fired == key);
            if has_fired {
                return Fault::Late { key, fired: now, last };
            }
        }
        Fault::Lost { key, last }
    }

    /// Sleeps as a driver does until the next event, or until the first timer must fire.
    fn sleep(&mut self) -> Result<(), Fault> {
        let Some((_, last)) = self.state.get_mut().judge.most_urgent() else { return Ok(()) };
        if T::NEXT_EVENT == NextEvent::None {
            return self.advance(last.max(self.now()));
        }
        let pending = self.state.get_mut().judge.count();
        for _ in 0..ROUNDS {
            let next = self.timers.next_event();
            self.state.get_mut().judge.next_event(next)?;
            let now = next.unwrap_or(last).max(self.now());
            self.advance(now)?;
            if self.state.get_mut().judge.count() < pending || self.now() >= last {
                return Ok(());
            }
        }
        Err(Fault::Stuck { now: self.now(), rounds: ROUNDS })
    }

    fn check_next_event(&mut self) -> Result<(), Fault> {
        if T::NEXT_EVENT == NextEvent::None {
            return Ok(());
        }
        let next = self.timers.next_event();
        self.state.get_mut().judge.next_event(next)
    }

    /// Lets all pending timers fire.
    fn finish(&mut self) -> Result<(), Fault> {
        while self.state.get_mut().judge.count() > 0 {
            self.sleep()?;
        }
        self.check_next_event()
    }
}

impl<T: Timers> State<'_, T> {
    /// Judges an expiry, and performs what the history has for this timer's callback.
    fn fire(&mut self, timers: &mut T, key: u32) {
        let result = self.judge.fire(key).and_then(|()| {
            let (now, later) = self.reactions.drain(..).partition(|&(reacting, _)| reacting == key);
            let now: Vec<(u32, Op)> = now;
            self.reactions = later;
            now.into_iter().try_for_each(|(_, op)| self.change(timers, op, Some(key)))
        });
        if let Err(fault) = result {
            self.fault.get_or_insert(fault);
        }
    }

    /// Arms a timer, moves its deadline or cancels it, if the timers promise anything about that.
    fn change(&mut self, timers: &mut T, op: Op, inside: Option<u32>) -> Result<(), Fault> {
        let now = self.judge.now;
        let at = |delay| now.saturating_add_signed(delay).min(now.saturating_add(T::HORIZON));
        match op {
            Op::ArmInCallback { other: key, delay, .. } => {
                // With a shorter delay, callbacks could keep one call of `advance` busy forever.
                self.change(timers, Op::Arm { key, delay: delay.max(one_tick::<T>()) }, inside)?;
            }
            Op::Arm { key, delay } if T::ARM_REPLACES || !self.judge.is_pending(key) => {
                let deadline = at(delay);
                self.record(inside, || format!("timers.arm({key}, {deadline});"));
                timers.arm(key, deadline);
                self.judge.arm(key, deadline);
            }
            Op::PushOut { key, delay }
                if self.judge.is_pending(key) && (T::ARM_REPLACES || T::CANCEL != Cancel::None) =>
            {
                let deadline = at(delay);
                self.record(inside, || format!("timers.push_out({key}, {deadline});"));
                timers.push_out(key, deadline);
                self.judge.arm(key, deadline);
            }
            Op::Cancel { key } | Op::CancelInCallback { other: key, .. }
                if T::CANCEL != Cancel::None =>
            {
                self.record(inside, || format!("timers.cancel({key});"));
                let returned = timers.cancel(key);
                self.judge.cancel(key, returned)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn record(&self, inside: Option<u32>, line: impl FnOnce() -> String) {
        let Some(calls) = self.calls else { return };
        let comment = inside.map(|key| format!("// In the callback of timer {key}: "));
        calls.borrow_mut().push(comment.unwrap_or_default() + &line());
    }
}
