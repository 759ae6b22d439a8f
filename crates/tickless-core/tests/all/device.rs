//! The decisions about an event device, without base, lock and timers: R7, R8 and R11 as tables of
//! moves and their results.

use tickless_core::rearm::{
    Device, HandlerEnd, LazyTimers, Limits, Locality, Policy, Rearm, Urgency,
};
use tickless_core::time::Ns;

/// A move. Times are in microseconds; `None` is never.
#[derive(Clone, Copy, Debug)]
enum Move {
    Start(u64),
    /// A local removal of a timer that expired then; the remaining timers are due at the second
    /// time.
    Remove(u64, Option<u64>),
    /// The event is delivered, and its handler fires a timer.
    Enter,
    /// The handler ends; the remaining timers are due then.
    Leave(Option<u64>),
    /// The handler gives up.
    BackOff,
}
use Move::{BackOff, Enter, Leave, Remove, Start};

/// The expected result of a move: no change, programmed for a time, or stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Keep,
    Arm(u64),
    Stop,
}
use Expected::{Arm, Keep, Stop};

fn us(us: Option<u64>) -> Ns {
    us.map_or(Ns::NEVER, Ns::from_us)
}

fn make(device: &mut Device, step: Move, now: Ns) -> Expected {
    let rearm = match step {
        Start(at) => device.started(us(Some(at)), || now),
        Remove(at, left) => device.removed(us(Some(at)), Locality::Local, || us(left), || now),
        Enter => {
            device.enter(now);
            Rearm::Keep
        }
        Leave(left) => device.leave(us(left), 1, now),
        BackOff => device.back_off(now, 1, now),
    };
    match rearm {
        Rearm::Keep => Keep,
        Rearm::Arm(Ns::NEVER) => Stop,
        Rearm::Arm(at) => Arm(at.0 / 1_000),
        Rearm::Kick(cpu) => panic!("a device does not kick {cpu:?}"),
    }
}

fn play(policy: Policy, limits: Limits, table: &[(u64, Move, Expected)]) -> Device {
    let mut device = Device::new(policy, limits);
    for (line, &(now, step, expected)) in table.iter().enumerate() {
        let before = device.armed();
        let found = make(&mut device, step, Ns::from_us(now));
        assert_eq!(found, expected, "{policy:?}, line {line}: {step:?} at {now} us");
        match found {
            Keep if !matches!(step, Enter) => assert_eq!(device.armed(), before),
            Keep => assert_eq!(device.armed(), Ns::NEVER, "R5: in the handler that is never"),
            Arm(at) => assert_eq!(device.armed(), Ns::from_us(at)),
            Stop => assert_eq!(device.armed(), Ns::NEVER),
        }
    }
    device
}

/// Goal: lazy timers write only for an earlier time, unless laziness is ignored.
#[test]
fn lazy_timers_move_the_device_only_ahead() {
    let us = Ns::from_us;
    for (honours, kept) in [(LazyTimers::Honoured, true), (LazyTimers::Ignored, false)] {
        let device = Device::new(Policy::RestartAware, Limits::NONE);
        let mut device = device.with(honours, HandlerEnd::Programs);
        assert_eq!(device.started(us(500), || Ns::ZERO), Rearm::Arm(us(500)));
        let mut restart = |urgency, old, new, left| {
            let (earliest, now) = (|| us(left), || us(1));
            device.restarted(urgency, us(old), us(new), Locality::Local, earliest, now)
        };
        let pushed_out = if kept { Rearm::Keep } else { Rearm::Arm(us(700)) };
        assert_eq!(restart(Urgency::Lazy, 500, 900, 700), pushed_out, "{honours:?}");
        assert_eq!(restart(Urgency::Lazy, 900, 400, 400), Rearm::Arm(us(400)));
        assert_eq!(restart(Urgency::Prompt, 400, 900, 700), Rearm::Arm(us(700)));
        assert_eq!(device.spares(Urgency::Lazy), kept);
        assert!(!device.spares(Urgency::Prompt));
    }
}

/// Goal: after a handler that defers the rearm, only `settle` writes, once (R14).
#[test]
fn a_deferred_rearm_is_one_write() {
    let us = Ns::from_us;
    let device = Device::new(Policy::RestartAware, Limits::NONE);
    let mut device = device.with(LazyTimers::Ignored, HandlerEnd::Defers);
    let _ = device.started(us(500), || Ns::ZERO);
    assert_eq!(device.settle(us(500), us(1)), Rearm::Keep, "nothing was deferred");
    device.enter(us(500));
    assert_eq!(device.leave(us(900), 1, us(501)), Rearm::Keep);
    assert!(!device.promises() && !device.is_handling());
    assert_eq!(device.started(us(600), || us(502)), Rearm::Keep);
    assert_eq!(device.removed(us(600), Locality::Local, || us(900), || us(503)), Rearm::Keep);
    assert_eq!(device.armed(), Ns::NEVER);
    assert_eq!(device.settle(us(900), us(504)), Rearm::Arm(us(900)));
    assert!(device.promises());
    assert_eq!(device.settle(us(900), us(505)), Rearm::Keep, "once");
    assert_eq!(device.counts().writes, 2);
}

const MIN_100_US: Limits = Limits { min_delta: Ns::from_us(100), ..Limits::NONE };

#[test]
fn backing_off_is_bounded() {
    let device = Device::new(Policy::Lazy, Limits::NONE);
    assert_eq!([1, 2, 3, 4].map(|passes| device.may_pass(passes)), [true, true, false, false]);
    for (took, until) in
        [(0, 0), (40, 40), (99_999, 99_999), (100_001, 100_000), (1 << 40, 100_000)]
    {
        let end = 1_000 + took;
        let table = [(1_000, Enter, Keep), (end, BackOff, Arm(end + until))];
        let device = play(Policy::Lazy, Limits::NONE, &table);
        assert_eq!((device.counts().hangs, device.promises()), (1, false));
    }
    let short = Limits { backoff_max: Ns::from_us(7), ..MIN_100_US };
    play(Policy::Lazy, short, &[(0, Enter, Keep), (50, BackOff, Arm(150))]);
}

/// Goal: the event clears its forced mark (R8): the next one is programmed as usual.
#[test]
fn the_next_event_is_not_forced() {
    for policy in [Policy::Eager, Policy::RestartAware] {
        let table = [
            (1_000, Start(500), Arm(1_100)),
            (1_100, Enter, Keep),
            (1_101, Leave(Some(2_000)), Arm(2_000)),
            (1_102, Remove(2_000, Some(3_000)), Arm(3_000)),
            (1_103, Start(2_500), Arm(2_500)),
        ];
        let device = play(policy, MIN_100_US, &table);
        assert!(device.promises());
    }
    // Delivered and forced again, by the handler itself; then by a back-off.
    let table = [
        (1_000, Start(500), Arm(1_100)),
        (1_100, Enter, Keep),
        (1_110, Leave(Some(1_111)), Arm(1_210)),
        (1_120, Start(1_130), Keep),
        (1_210, Enter, Keep),
        (1_290, BackOff, Arm(1_390)),
        (1_390, Enter, Keep),
        (1_400, Leave(Some(1_600)), Arm(1_600)),
        (1_401, Start(1_550), Arm(1_550)),
    ];
    assert_eq!(play(Policy::Lazy, MIN_100_US, &table).counts().hangs, 1);
}

#[test]
fn deadlines_are_clamped_to_the_limits() {
    let limits = Limits { max_delta: Ns::from_us(1_000), ..MIN_100_US };
    let table = [
        (0, Start(50), Arm(100)),
        (100, Enter, Keep),
        (101, Leave(Some(5_000)), Arm(1_101)),
        (102, Start(4_000), Keep),
        (1_101, Enter, Keep),
        (1_102, Leave(Some(1_202)), Arm(1_202)),
        (1_202, Enter, Keep),
        (1_203, Leave(None), Keep),
        (1_204, Start(2_204), Arm(2_204)),
    ];
    for policy in Policy::ALL {
        play(policy, limits, &table);
    }
    // Stopping is not a deadline.
    play(Policy::Eager, limits, &[(0, Start(500), Arm(500)), (1, Remove(500, None), Stop)]);
    // Contradictory limits still program the device.
    let contradictory = Limits { max_delta: Ns::from_us(10), ..MIN_100_US };
    play(Policy::Lazy, contradictory, &[(0, Start(50), Arm(10)), (10, Enter, Keep)]);
}

#[test]
fn the_ends_of_the_range() {
    let mut device = Device::new(Policy::Eager, MIN_100_US);
    let end = Ns(u64::MAX - 1);
    assert_eq!(device.started(Ns::NEVER, || Ns::ZERO), Rearm::Keep, "never is not a deadline");
    assert_eq!(device.started(end, || Ns::ZERO), Rearm::Arm(end));
    assert_eq!(device.started(Ns(5), || Ns(u64::MAX - 5)), Rearm::Keep, "no sooner than that");
    device.enter(end);
    assert_eq!(device.leave(Ns::ZERO, 0, Ns::ZERO), Rearm::Arm(Ns::from_us(100)));
    assert_eq!(device.counts().spurious, 1);
}
