//! The decisions about an event device, without base, lock and timers: R7 and R14. (R8 and R11 are
//! rules of the histories in `rearm`.)

use tickless_core::rearm::{
    Device, HandlerEnd, LazyTimers, Limits, Locality, Policy, Rearm, Urgency,
};
use tickless_core::time::Ns;

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

/// Goal: a back-off lasts as long as the handler took, at most `backoff_max`, and respects the
/// device's minimum (R7).
#[test]
fn backing_off_is_bounded() {
    let us = Ns::from_us;
    let device = Device::new(Policy::Lazy, Limits::NONE);
    assert_eq!([1, 2, 3, 4].map(|passes| device.may_pass(passes)), [true, true, false, false]);
    let short = Limits { backoff_max: us(7), min_delta: us(100), ..Limits::NONE };
    for (limits, took, pause) in [
        (Limits::NONE, 0, 0),
        (Limits::NONE, 40, 40),
        (Limits::NONE, 99_999, 99_999),
        (Limits::NONE, 100_001, 100_000),
        (Limits::NONE, 1 << 40, 100_000),
        (short, 50, 100),
    ] {
        let mut device = Device::new(Policy::Lazy, limits);
        let end = us(1_000 + took);
        device.enter(us(1_000));
        assert_eq!(device.back_off(end, 1, end), Rearm::Arm(end.after(us(pause))));
        assert_eq!((device.counts().hangs, device.promises()), (1, false));
    }
}
