//! Public types: auto traits, sizes and error messages.

use std::error::Error;
use tickless::callback::{Cancel, StartError, Started};
use tickless::clock::ClockSource;
use tickless::driver::{CpuId, StartTimersError};
use tickless::embed::{PinnedHrTimer, PinnedTimeout};
use tickless::future::{self, CoarseSleep, DeadlineScope, Sleep};
use tickless::local::{Clock, Key, LocalError};
use tickless::periodic::{Missed, PeriodError};
use tickless::policy::{Policy, PushOut};
use tickless::stats::{BaseCounts, BaseStats, Stats};
use tickless::time::{Instant, Tick};
use tickless::{Builder, Fired, HrTimer, LocalTimers, Periodic, Timeout, Timers, VirtualTime};

#[test]
fn handles_are_send_and_sync() {
    fn anywhere<T: Send + Sync + 'static>() {}
    anywhere::<Timers>();
    anywhere::<Timeout>();
    anywhere::<HrTimer>();
    anywhere::<Periodic>();
    anywhere::<VirtualTime>();
    anywhere::<Builder>();
    anywhere::<Stats>();
    anywhere::<StartTimersError>();
    anywhere::<Sleep>();
    anywhere::<CoarseSleep>();
    fn sent<T: Send>() {}
    sent::<LocalTimers<std::cell::Cell<u8>>>();
    sent::<Fired<'_>>();
}

#[test]
fn values_are_copy_and_comparable() {
    fn value<T: Copy + PartialEq + std::fmt::Debug + Send + Sync + 'static>() {}
    value::<BaseCounts>();
    value::<BaseStats>();
    value::<Cancel>();
    value::<ClockSource>();
    value::<CpuId>();
    value::<Key>();
    value::<LocalError>();
    value::<Missed>();
    value::<Instant>();
    value::<PeriodError>();
    value::<Policy>();
    value::<PushOut>();
    value::<StartError>();
    value::<Started>();
    value::<Tick>();
}

#[test]
fn errors_state_what_to_do() {
    let refused = std::io::Error::from(std::io::ErrorKind::WouldBlock);
    let thread = StartTimersError::Thread { base: CpuId(7), error: refused };
    assert!(thread.source().is_some(), "the system's own error is not lost");
    let mut local = LocalTimers::new(Clock::manual(Instant::ZERO));
    let gone = local.insert(()).unwrap();
    local.remove(gone);
    let stale = local.cancel(gone).unwrap_err();
    let errors: [(Box<dyn Error + Send + Sync>, &str); 7] = [
        (Box::new(thread), "base 7"),
        (Box::new(StartError::Shut), "make a new one"),
        (Box::new(StartError::NoSuchBase(CpuId(9))), "base 9"),
        (Box::new(PeriodError::Zero), "at least 1 ns"),
        (Box::new(PeriodError::from(StartError::Shut)), "make a new one"),
        (Box::new(stale), "removed"),
        (Box::new(LocalError::Full), "remove some"),
    ];
    for (error, says) in errors {
        let text = error.to_string();
        assert!(text.contains(says), "{text}");
        assert!(!text.ends_with('.') && !text.contains('\n') && text.len() < 150, "{text}");
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn types_have_the_documented_sizes() {
    assert_eq!((size_of::<Timeout>(), size_of::<HrTimer>(), size_of::<Periodic>()), (24, 24, 64));
    type Callback = fn(&mut Fired<'_>);
    assert_eq!(size_of::<PinnedTimeout<Callback>>(), 56 + size_of::<Callback>());
    assert_eq!(size_of::<PinnedHrTimer<Callback>>(), 64 + size_of::<Callback>());
    assert_eq!((size_of::<Sleep>(), size_of::<CoarseSleep>()), (96, 88));
    type Inner = std::future::Ready<u64>;
    let over = size_of::<future::Timeout<Inner, CoarseSleep>>() - size_of::<Inner>();
    assert!(over <= 160, "{over} bytes over the future that it wraps");
    assert_eq!(size_of::<DeadlineScope<Inner>>() - size_of::<Inner>(), 104);
}
