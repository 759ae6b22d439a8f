//! Differences of the portable platform from Linux: timers on realtime check their clock once a
//! second, because the system does not report steps; and a base belongs to threads, not to a CPU.

use crate::support::{MS, shared_count, wait_until};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tickless::Timers;
use tickless::callback::Cancel;
use tickless::clock::{TimeBase, realtime};

#[test]
fn an_alarm_on_realtime_is_not_early() {
    let timers = Timers::process().unwrap();
    let (rang, at) = shared_count();
    let alarm = timers.clock_timer(TimeBase::Realtime, move |fired| {
        assert!(fired.now() >= fired.deadline());
        at.store(fired.now().as_nanos(), Ordering::SeqCst);
    });
    let due = realtime(SystemTime::now() + MS * 30);
    alarm.start_at(due).unwrap();
    assert!(timers.clock_watch_fallback().is_none(), "nothing was refused");
    wait_until("the alarm rings", || rang.load(Ordering::SeqCst) > 0);
    assert!(rang.load(Ordering::SeqCst) >= due.as_nanos());
    alarm.start(Duration::from_secs(3600)).unwrap();
    assert_eq!(alarm.cancel_sync(), Ok(Cancel::Pending));
}
