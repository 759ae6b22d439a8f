//! Random histories of quinn's timers.

#[path = "../../../tickless/tests/support/histories.rs"]
mod histories;
#[path = "../../../tickless/tests/support/sleeps.rs"]
mod sleeps;

use quinn::{AsyncTimer, Runtime};
use sleeps::{Kind, Sleeper, attack};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tickless::future::TimerSource;
use tickless_quinn::TicklessRuntime;

struct OfQuinn(Pin<Box<dyn AsyncTimer>>);

impl Sleeper for OfQuinn {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }

    fn reset(&mut self, deadline: Instant) -> bool {
        self.0.as_mut().reset(deadline);
        true
    }
}

/// Goal: timers are never early or lost, though any thread uses them, without a runtime too.
#[test]
fn timers_survive_an_attack() {
    attack(
        "attack",
        "timers_survive_an_attack",
        Kind {
            now: TimerSource::std_now,
            sleep_until: |timers, deadline| {
                let runtime = TicklessRuntime::over(Arc::new(quinn::TokioRuntime), timers);
                OfQuinn(runtime.new_timer(deadline))
            },
        },
    );
}
