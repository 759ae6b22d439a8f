//! Random histories of hyper's sleeps.

#[path = "../../../tickless/tests/support/histories.rs"]
mod histories;
#[path = "../../../tickless/tests/support/sleeps.rs"]
mod sleeps;

use hyper::rt::{Sleep, Timer};
use sleeps::{Kind, Sleeper, attack};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tickless::future::TimerSource;
use tickless_hyper::TicklessTimer;

struct OfHyper(TicklessTimer, Pin<Box<dyn Sleep>>);

impl Sleeper for OfHyper {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.1.as_mut().poll(cx)
    }

    fn reset(&mut self, deadline: Instant) -> bool {
        self.0.reset(&mut self.1, deadline);
        true
    }
}

#[test]
fn sleeps_survive_an_attack() {
    attack(
        "attack",
        "sleeps_survive_an_attack",
        Kind {
            now: TimerSource::std_now,
            sleep_until: |timers, deadline| {
                let timer = TicklessTimer::new(timers);
                let sleep = timer.sleep_until(deadline);
                OfHyper(timer, sleep)
            },
        },
    );
}
