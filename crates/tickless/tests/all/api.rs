//! What the types are: where they may go, what they say, and what they say when they fail.

use std::error::Error;
use std::time::Duration;
use tickless::{
    BaseCounts, BaseStats, Builder, Cancel, ClockSource, CpuId, DeviceFallback, Fired, HrTimer,
    Key, LocalError, LocalTimers, Missed, Ns, Period, PeriodError, Periodic, Policy, PushOut,
    StartError, StartTimersError, Started, Stats, Tick, TickError, Timeout, Timers, VirtualTime,
    Window,
};

/// Goal: handles may be shared between threads and sent to others, and no promise of that is
/// lost by accident.
#[test]
fn handles_may_go_anywhere() {
    fn anywhere<T: Send + Sync + 'static>() {}
    anywhere::<Timers>();
    anywhere::<Timeout>();
    anywhere::<HrTimer>();
    anywhere::<Periodic>();
    anywhere::<VirtualTime>();
    anywhere::<Builder>();
    anywhere::<Stats>();
    anywhere::<StartTimersError>();
    fn sent<T: Send>() {}
    sent::<LocalTimers<std::cell::Cell<u8>>>();
    sent::<Fired<'_>>();
    sent::<Period<'_, '_>>();
}

/// Goal: small values are values: copied, compared, printed.
#[test]
fn values_are_values() {
    fn value<T: Copy + PartialEq + std::fmt::Debug + Send + Sync + 'static>() {}
    value::<BaseCounts>();
    value::<BaseStats>();
    value::<Cancel>();
    value::<ClockSource>();
    value::<CpuId>();
    value::<Key>();
    value::<LocalError>();
    value::<Missed>();
    value::<Ns>();
    value::<PeriodError>();
    value::<Policy>();
    value::<PushOut>();
    value::<StartError>();
    value::<Started>();
    value::<Tick>();
    value::<TickError>();
    value::<Window>();
}

/// Goal: every error is an `Error` whose text says what to do, in one sentence, and names what
/// it is about.
#[test]
fn errors_say_what_to_do() {
    let refused = std::io::Error::from(std::io::ErrorKind::WouldBlock);
    let thread = StartTimersError::Thread { base: CpuId(7), error: refused };
    assert!(thread.source().is_some(), "the system's own error is not lost");
    let mut local = LocalTimers::new(Ns::ZERO);
    let gone = local.insert(()).unwrap();
    local.remove(gone);
    let stale = local.cancel(gone).unwrap_err();
    let short = Tick::new(Ns(5)).unwrap_err();
    let long = Tick::new(Ns::from_secs(5)).unwrap_err();
    let descriptor = StartTimersError::Descriptor(DeviceFallback { call: "eventfd2", errno: 1 });
    let errors: [(Box<dyn Error + Send + Sync>, &str); 10] = [
        (Box::new(descriptor), "start_in_loop_with"),
        (Box::new(thread), "base 7"),
        (Box::new(StartError::Shut), "make a new one"),
        (Box::new(StartError::NoSuchBase(CpuId(9))), "base 9"),
        (Box::new(PeriodError::Zero), "at least 1 ns"),
        (Box::new(PeriodError::from(StartError::Shut)), "make a new one"),
        (Box::new(stale), "removed"),
        (Box::new(LocalError::Full), "remove some"),
        (Box::new(short), "high-resolution"),
        (Box::new(long), "shorter"),
    ];
    for (error, says) in errors {
        let text = error.to_string();
        assert!(text.contains(says), "{text}");
        assert!(!text.ends_with('.') && !text.contains('\n') && text.len() < 150, "{text}");
    }
}

/// Goal: everything can be printed for debugging, at any time, without waiting for anything.
#[test]
fn everything_can_be_printed() {
    let time = VirtualTime::new();
    let timers = time.timers().clone();
    let printed = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let out = std::sync::Arc::clone(&printed);
    let timeout = timers.timeout(move |fired| {
        *out.lock().unwrap() = format!("{fired:?}");
        panic!("still printed below");
    });
    let (hrtimer, periodic) = (timers.hrtimer(|_| {}), timers.periodic(|_| {}));
    timeout.start(Duration::from_secs(1)).unwrap();
    time.advance(Duration::from_secs(2));
    assert!(printed.lock().unwrap().contains("Fired"));
    let all = format!(
        "{time:?} {timers:?} {timeout:?} {hrtimer:?} {periodic:?} {:?} {:?} {:?}",
        Timers::builder(),
        timers.stats(),
        LocalTimers::<u8>::new(Ns::NEVER),
    );
    assert!(all.contains("panics: 1") && all.contains("Timeout") && all.contains("never"), "{all}");
}
