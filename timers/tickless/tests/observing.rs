//! The features `tracing` and `metrics`: which events are emitted; a subscriber changes nothing.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[path = "support/woken.rs"]
mod woken;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless::clock::TimeBase;
use tickless::driver::CpuId;
use tickless::embed::PinnedHrTimer;
use tickless::future::Sleep;
use tickless::periodic::Phase;
use tickless::time::Instant;
use tickless::{Fired, Timers, VirtualTime};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use woken::{poll, woken};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

type Seen = Arc<Mutex<Vec<(Level, BTreeMap<&'static str, String>)>>>;

/// A subscriber that records every event up to a level, and then runs a closure.
struct Notes {
    level: Level,
    seen: Seen,
    then: Box<dyn Fn(&Metadata<'_>) + Send + Sync>,
}

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tickless" && *metadata.level() <= self.level
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        self.seen.lock().unwrap().push((*event.metadata().level(), fields.0));
        (self.then)(event.metadata());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Runs `body` with a subscriber; returns the events as level, message and timer.
fn recorded(
    level: Level,
    then: impl Fn(&Metadata<'_>) + Send + Sync + 'static,
    run: impl FnOnce(),
) -> Vec<(Level, String, String)> {
    let seen = Seen::default();
    let notes = Notes { level, seen: Arc::clone(&seen), then: Box::new(then) };
    tracing::subscriber::with_default(notes, run);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let of = |fields: &BTreeMap<_, String>, name| fields.get(name).cloned().unwrap_or_default();
    seen.iter()
        .map(|(level, fields)| (*level, of(fields, "message"), of(fields, "timer")))
        .collect()
}

/// Causes every event that is emitted; returns what the program itself observes.
fn story() -> String {
    let builder = Timers::builder().bases(2).slow_after(5 * MS).time_callbacks();
    let time = Arc::new(VirtualTime::with_builder(builder, Instant::from_secs(1)));
    let clock = Arc::downgrade(&time);
    let takes = move |_: &mut Fired<'_>| clock.upgrade().unwrap().advance(9 * MS);
    let slow = time.timers().hrtimer(takes).labelled("slow").pinned(CpuId(0));
    let late = time.timers().timeout(|_| {}).labelled("late").pinned(CpuId(0));
    let bad = time.timers().timeout(|_| panic!("on purpose")).labelled("bad").pinned(CpuId(0));
    let never = time.timers().timeout(|_| {}).labelled("never").pinned(CpuId(0));
    slow.start(MS).unwrap();
    late.start(3 * MS).unwrap();
    bad.start(20 * MS).unwrap();
    never.start(20 * MS).unwrap();
    never.cancel();
    time.advance(30 * MS);
    time.timers().offline(CpuId(1)).unwrap();
    time.timers().online(CpuId(1)).unwrap();
    format!("{:?}", time.timers().stats())
}

#[test]
fn problems_are_events_with_their_owner() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (quiet, mut observed) = (story(), String::new());
    let found = recorded(Level::INFO, |_| {}, || observed = story());
    let all = recorded(Level::TRACE, |_| {}, || _ = story());
    std::panic::set_hook(hook);
    assert_eq!(quiet, observed, "a subscriber changes nothing");
    let expected = [
        (Level::WARN, "slow callback", "slow"),
        (Level::WARN, "overdue", "late"),
        (Level::ERROR, "a callback panicked", "bad"),
        (Level::INFO, "base offline", ""),
        (Level::INFO, "base online", ""),
    ];
    assert_eq!(found, expected.map(|(level, what, who)| (level, what.into(), who.into())));
    let of = |what: &str| {
        let found = all.iter().filter(|event| event.1 == what);
        found.map(|event| event.2.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("armed"), ["slow", "late", "bad", "never"]);
    assert_eq!(of("cancelled"), ["never"]);
    assert_eq!(of("fired"), ["slow", "late", "bad"]);
    assert_eq!(all.len(), found.len() + 4 + 1 + 3);
}

/// Dropping a sleep or a timer that has fired is no cancel; dropping a pending one is.
#[test]
fn a_sleep_that_fired_is_not_logged_as_cancelled() {
    let time = VirtualTime::new();
    let (_, waker) = woken();
    let events = recorded(
        Level::TRACE,
        |_| {},
        || {
            let mut sleeps = [MS, 20 * MS].map(|after| Box::pin(time.timers().sleep(after)));
            assert!(sleeps.iter_mut().all(|sleep| poll(sleep.as_mut(), &waker).is_pending()));
            time.advance(10 * MS);
            assert!(poll(sleeps[0].as_mut(), &waker).is_ready());
        },
    );
    let messages: Vec<&str> = events.iter().map(|event| event.1.as_str()).collect();
    assert_eq!(messages, ["armed", "armed", "fired", "cancelled"]);
}

#[test]
fn a_subscriber_may_use_timers_and_panic() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let time = Arc::new(VirtualTime::new());
    let own = time.timers().timeout(|_| {});
    let then = move |metadata: &Metadata<'_>| {
        if *metadata.level() == Level::TRACE {
            return;
        }
        // Inside a callback's frame: each call is refused or done, and none waits forever.
        own.start(MS).unwrap();
        let _ = own.cancel_sync();
        panic!("the subscriber panics");
    };
    let fired = Arc::new(AtomicU64::new(0));
    let events = recorded(Level::WARN, then, || {
        let counted = Arc::clone(&fired);
        let bad = time.timers().timeout(|_| panic!("on purpose"));
        let good = time.timers().timeout(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        bad.start(MS).unwrap();
        good.start(2 * MS).unwrap();
        let advanced = catch_unwind(AssertUnwindSafe(|| time.advance(10 * MS)));
        assert!(advanced.is_ok(), "the panic reached the caller of `advance`");
    });
    std::panic::set_hook(hook);
    assert_eq!((events.len(), fired.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(time.timers().stats().panics, 2);
}

/// Returns a function that uses every object of some timers, and a virtual clock.
fn uses_every_object(
    timers: &Timers,
    time: &VirtualTime,
) -> impl Fn() + Clone + Send + Sync + use<> {
    let limiter = timers.limiter(2, 100 * MS).start().unwrap();
    let keyed = timers.limiter(2, 100 * MS).keyed::<String>().unwrap();
    let throttle = timers.throttle(MS, 100 * MS).start().unwrap();
    let periodic = Arc::new(timers.periodic(|_| {}).phase(Phase::Spread));
    let alarm = Arc::new(timers.clock_timer(TimeBase::Realtime, |_| {}));
    let time = time.clone();
    move || {
        let _ = (limiter.try_acquire(1), keyed.try_acquire("key", 1));
        let _ = (limiter.retry_after(1), keyed.limiter("key").map(|it| it.available()));
        let (_, waker) = woken();
        let (mut one, mut two) = (Box::pin(limiter.acquire(2)), Box::pin(limiter.acquire(2)));
        let _ = (poll(one.as_mut(), &waker), poll(two.as_mut(), &waker));
        throttle.join().unwrap().check().unwrap();
        let _ = (periodic.start(SECOND), periodic.is_active(), periodic.try_cancel());
        let _ = (alarm.start(SECOND), alarm.is_pending(), alarm.try_cancel());
        time.set_realtime(time.now_on(TimeBase::Realtime) + SECOND);
        time.advance(MS);
        let _ = (time.timers().stats(), time.next_event());
    }
}

/// Goal: A4 (no event under a lock): otherwise the subscriber would wait for that lock forever.
#[test]
fn a_subscriber_may_use_every_object() {
    let time = VirtualTime::new();
    let use_all = uses_every_object(time.timers(), &time);
    let rounds = Arc::new(AtomicU64::new(0));
    let (done, ended) = std::sync::mpsc::channel();
    let (reenter, counted) = (use_all.clone(), Arc::clone(&rounds));
    let then = move |_: &Metadata<'_>| {
        reenter();
        counted.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::spawn(move || {
        recorded(Level::TRACE, then, || {
            use_all();
            let timers = time.timers();
            let periodic = timers.periodic(|_| {}).phase(Phase::Spread);
            let alarm = timers.clock_timer(TimeBase::Realtime, |_| {});
            alarm.start_at(time.now_on(TimeBase::Realtime) + SECOND).unwrap();
            periodic.start(MS).unwrap();
            time.set_realtime(time.now_on(TimeBase::Realtime) + 2 * SECOND);
            time.advance(SECOND);
            let _ = (periodic.cancel(), alarm.cancel());
        });
        done.send(()).unwrap();
    });
    ended.recv_timeout(20 * SECOND).expect("the subscriber waits for a lock");
    assert!(rounds.load(Ordering::Relaxed) > 5);
}

/// Goal: A4, on the driver thread of the objects that the subscriber uses. Method: a callback gives
/// the driver thread its subscriber.
#[test]
fn a_subscriber_on_a_driver_thread_may_use_every_object() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let use_all = uses_every_object(&timers, &VirtualTime::new());
    let rounds = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&rounds);
    let (mut reenter, all) = (Some(use_all.clone()), use_all);
    let subscribes = timers.hrtimer(move |_| {
        let (reenter, counted) = (reenter.take().unwrap(), Arc::clone(&counted));
        let then = Box::new(move |_: &Metadata<'_>| {
            reenter();
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let notes = Notes { level: Level::TRACE, seen: Seen::default(), then };
        std::mem::forget(tracing::subscriber::set_default(notes));
    });
    subscribes.start(Duration::ZERO).unwrap();
    let mut beats = 0;
    let (done, ended) = std::sync::mpsc::channel();
    let heart = timers.periodic(move |_| {
        all();
        beats += 1;
        if beats == 20 {
            done.send(()).unwrap();
        }
    });
    heart.start(MS).unwrap();
    if ended.recv_timeout(20 * SECOND).is_err() {
        std::mem::forget((heart, subscribes, timers));
        panic!("the subscriber waits for a lock");
    }
    assert!(rounds.load(Ordering::Relaxed) > 20);
}

/// Goal: X4 (drops in callbacks), K3 (unsafe requirements).
#[test]
fn a_subscriber_drops_the_sleep_that_fires() {
    type Callback = Box<dyn FnMut(&mut Fired<'_>) + Send>;
    /// Two timers in memory that outlives them.
    struct Both {
        sleep: Pin<Box<Option<Sleep>>>,
        timer: Pin<Box<Option<PinnedHrTimer<Callback>>>>,
    }
    let time = Arc::new(VirtualTime::new());
    let ((woken, waker), calls) = (woken(), Arc::new(AtomicU64::new(0)));
    let called = Arc::clone(&calls);
    let callback: Callback = Box::new(move |_| _ = called.fetch_add(1, Ordering::Relaxed));
    let timer = PinnedHrTimer::new(time.timers(), callback);
    let sleep = Box::pin(Some(time.timers().sleep(MS)));
    let both = Arc::new(Mutex::new(Both { sleep, timer: Box::pin(Some(timer)) }));
    let dropped = Arc::clone(&both);
    let then = move |_: &Metadata<'_>| {
        // This lock is held while the timers are armed.
        if let Ok(mut both) = dropped.try_lock() {
            both.sleep.set(None);
            both.timer.set(None);
        }
    };
    recorded(Level::TRACE, then, || {
        {
            let mut both = both.lock().unwrap();
            let sleep = both.sleep.as_mut().as_pin_mut().unwrap();
            assert!(poll(sleep, &waker).is_pending());
            both.timer.as_ref().as_pin_ref().unwrap().timer().start(MS).unwrap();
        }
        time.advance(10 * MS);
    });
    assert_eq!((woken.count(), calls.load(Ordering::Relaxed)), (0, 0));
    assert_eq!(time.timers().stats().pending(), 0);
}

#[derive(Default)]
struct Recorder(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Recorder {
    fn cell(&self, key: &metrics::Key) -> Arc<AtomicU64> {
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        Arc::clone(self.0.lock().unwrap().entry(name).or_default())
    }

    fn value(&self, name: &str) -> u64 {
        let values = self.0.lock().unwrap();
        values.get(name).map_or_else(|| panic!("no {name}"), |cell| cell.load(Ordering::Relaxed))
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn describe_gauge(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn describe_histogram(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        metrics::Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(
        &self,
        _: &metrics::Key,
        _: &metrics::Metadata<'_>,
    ) -> metrics::Histogram {
        metrics::Histogram::noop()
    }
}

#[test]
fn metrics_equal_the_statistics() {
    let builder = Timers::builder().bases(2).time_callbacks();
    let time = VirtualTime::with_builder(builder, Instant::from_secs(1));
    let [soon, far] = [0, 1].map(|base| time.timers().timeout(|_| {}).pinned(CpuId(base)));
    soon.start(MS).unwrap();
    far.start(100 * MS).unwrap();
    time.advance(10 * MS);
    soon.cancel();
    let recorder = Recorder::default();
    for _ in 0..2 {
        metrics::with_local_recorder(&recorder, || time.timers().publish_metrics());
    }
    for (name, value) in [
        ("tickless_fired_total base=0", 1),
        ("tickless_fired_total base=1", 0),
        ("tickless_armed_total base=1", 1),
        ("tickless_late_seconds_bucket base=0 family=coarse le=0.000001023", 1),
        ("tickless_late_seconds_bucket base=0 family=coarse le=+Inf", 1),
        ("tickless_late_seconds_count base=0 family=coarse", 1),
        ("tickless_callbacks_total base=0", 1),
        ("tickless_panics_total", 0),
    ] {
        assert_eq!(recorder.value(name), value, "{name}");
    }
    // Counted on the caller's base, which may be either.
    let idle = |base: u8| recorder.value(&format!("tickless_cancels_total base={base} found=idle"));
    assert_eq!(idle(0) + idle(1), 1);
    let gauge = |name| f64::from_bits(recorder.value(name));
    assert_eq!(gauge("tickless_pending base=1 family=coarse"), 1.0);
    let sum = time.timers().stats().late_coarse().sum().as_secs_f64();
    assert_eq!(gauge("tickless_late_seconds_sum base=0 family=coarse"), sum);
    assert_eq!(gauge("tickless_pending_on_level base=1 level=1"), 1.0);
}
