//! What the suite found in published timers, as the shortest tests for their authors. Each fails,
//! so each is expected to panic here: one that passes has been mended.

use bitwheel::timer::{BitWheelWithFailover, Timer};
use calloop::timer::{TimeoutAction, Timer as Deadline};
use calloop::{Dispatcher, EventLoop};
use std::time::{Duration, Instant};

struct Reports(u32);

impl Timer for Reports {
    type Context = Vec<u32>;

    fn fire(&mut self, fired: &mut Vec<u32>) {
        fired.push(self.0);
    }
}

/// bitwheel 0.6.0: a timer that is due in the current tick waits for a turn of the first gear.
#[test]
#[should_panic(expected = "due at 0 ms, not fired by 63 ms")]
fn bitwheel_fires_a_due_timer_64_ticks_late() {
    let epoch = Instant::now();
    let mut wheel = BitWheelWithFailover::<Reports, 5, 1, 64>::boxed_with_epoch(epoch);
    let mut fired = Vec::new();
    wheel.insert(epoch, Reports(1));
    for ms in 1..64 {
        wheel.poll(epoch + Duration::from_millis(ms), &mut fired);
    }
    assert_eq!(fired, [1], "due at 0 ms, not fired by 63 ms");
}

/// bitwheel 0.6.0: such a timer cannot be cancelled, and fires nevertheless.
#[test]
#[should_panic(expected = "the timer has not fired")]
fn bitwheel_does_not_cancel_a_due_timer() {
    let epoch = Instant::now();
    let mut wheel = BitWheelWithFailover::<Reports, 5, 1, 64>::boxed_with_epoch(epoch);
    let timer = wheel.insert(epoch, Reports(1));
    assert!(wheel.cancel(timer).is_some(), "the timer has not fired");
}

/// bitwheel 0.6.0: "A 1-hour timer might fire within a ~64ms window"; here it is 192 s early.
#[test]
#[should_panic(expected = "early")]
fn bitwheel_fires_an_hour_three_minutes_early() {
    let epoch = Instant::now();
    let mut wheel = BitWheelWithFailover::<Reports, 5, 1, 64>::boxed_with_epoch(epoch);
    let mut fired = Vec::new();
    wheel.insert(epoch + Duration::from_secs(3_600), Reports(1));
    wheel.poll(epoch + Duration::from_secs(3_408), &mut fired);
    assert!(fired.is_empty(), "192 s early");
}

/// nexus-timer 1.5.0: deadlines are rounded down, and one at a whole tick to the tick before.
#[test]
#[should_panic(expected = "due at 1 ms, fired at 0")]
fn nexus_fires_a_tick_early() {
    let epoch = Instant::now();
    let mut wheel = nexus_timer::Wheel::unbounded(64, epoch);
    wheel.schedule_forget(epoch + Duration::from_millis(1), 7_u32);
    let mut fired = Vec::new();
    wheel.poll(epoch, &mut fired);
    assert!(fired.is_empty(), "due at 1 ms, fired at 0");
}

/// nexus-timer 1.5.0: a poll at `next_deadline` may fire nothing, and the deadline stays.
#[test]
#[should_panic(expected = "polled at next_deadline")]
fn nexus_has_nothing_to_fire_at_its_next_deadline() {
    let epoch = Instant::now();
    let mut wheel = nexus_timer::Wheel::unbounded(64, epoch);
    wheel.schedule_forget(epoch + Duration::from_nanos(1_000_001), 7_u32);
    let next = wheel.next_deadline().expect("one timer is pending");
    let mut fired = Vec::new();
    wheel.poll(next, &mut fired);
    assert_eq!(fired, [7], "polled at next_deadline");
}

/// wheel-timer2 0.1.2: a task without delay, added at the last slot of the first wheel.
#[test]
#[should_panic(expected = "called `Option::unwrap()` on a `None` value")]
fn wheel_timer2_panics_at_the_last_slot() {
    let mut wheel = wheel_timer2::MultiWheel::new(5, 60, Duration::from_millis(1));
    (0..59).for_each(|_| wheel.tick());
    wheel.add_handle().add(|| (), Duration::ZERO).expect("the wheel exists");
    wheel.tick();
}

/// calloop 0.14.5: a callback moves another timer that is due in the same dispatch, by an hour.
#[test]
#[should_panic(expected = "moved by an hour, fired at once")]
fn calloop_fires_a_timer_that_was_moved() {
    let mut event_loop = EventLoop::<u32>::try_new().expect("a loop starts");
    let (handle, due) = (event_loop.handle(), Instant::now());
    let second = Dispatcher::new(Deadline::from_deadline(due), |_, _, fired: &mut u32| {
        *fired += 1;
        TimeoutAction::Drop
    });
    let token = handle.register_dispatcher(second.clone()).expect("there is room");
    let first = Deadline::from_deadline(due - Duration::from_millis(1));
    let moves = move |_, _: &mut (), fired: &mut u32| {
        *fired = 0;
        second.as_source_mut().set_deadline(due + Duration::from_secs(3_600));
        handle.update(&token).expect("it is registered");
        TimeoutAction::Drop
    };
    event_loop.handle().insert_source(first, moves).expect("there is room");
    let mut fired = 0;
    event_loop.dispatch(Duration::ZERO, &mut fired).expect("it runs");
    assert_eq!(fired, 0, "moved by an hour, fired at once");
}
