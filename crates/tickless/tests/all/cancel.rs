//! X10 (each arming fires or is cancelled, never both): what a cancel finds.

use crate::support::{AnyTimer, Gate, HOUR, MS};
use std::time::Duration;
use tickless::callback::{Cancel, Started};
use tickless::driver::CpuId;
use tickless::{Timers, VirtualTime};

#[test]
fn starts_and_cancels_report_pending_and_idle() {
    let time = VirtualTime::new();
    for timer in AnyTimer::both(time.timers(), |_| {}) {
        assert_eq!(
            (timer.cancel(), timer.is_pending(), timer.is_active()),
            (Cancel::Idle, false, false)
        );
        assert_eq!(timer.start(MS), Ok(Started::Idle));
        assert_eq!([timer.start(HOUR), timer.start(MS)], [Ok(Started::Pending); 2]);
        assert_eq!((timer.is_pending(), timer.is_active()), (true, true));
        assert_eq!((timer.cancel(), timer.cancel()), (Cancel::Pending, Cancel::Idle));
        assert!(!timer.is_pending() && !timer.is_active());
        assert_eq!(timer.start(MS), Ok(Started::Idle));
        time.advance(MS * 3);
        assert_eq!((timer.is_pending(), timer.cancel()), (false, Cancel::Idle));
    }
    let total = time.timers().stats().total();
    assert_eq!((total.armed, total.rearmed, total.cancelled, total.fired), (4, 4, 2, 2));
}

#[test]
fn an_idle_timer_is_cancelled_while_its_base_is_busy() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let [idle, _] = AnyTimer::both(&timers, |_| {});
    idle.start(HOUR).unwrap();
    idle.cancel();
    let (gate, pass) = Gate::shared();
    let busy = timers.hrtimer(move |_| pass.pass()).pinned(CpuId(0));
    busy.start(Duration::ZERO).unwrap();
    gate.wait_inside();
    assert_eq!(idle.cancel(), Cancel::Idle);
    // Arming and cancelling other timers needs the base's lock, which no callback holds.
    assert_eq!((idle.start(HOUR), idle.cancel()), (Ok(Started::Idle), Cancel::Pending));
    gate.open();
}
