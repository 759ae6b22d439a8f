//! Random histories of the SDK's sleeps.

#[path = "../../../crates/tickless/tests/support/histories.rs"]
mod histories;
#[path = "../../../crates/tickless/tests/support/sleeps.rs"]
mod sleeps;

use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use sleeps::{Kind, Sleeper, attack};
use std::pin::Pin;
use std::task::{Context, Poll};
use tickless::future::TimerSource;
use tickless_smithy::TicklessSleep;

struct OfSmithy(Sleep);

impl Sleeper for OfSmithy {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
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
                let after = deadline.saturating_duration_since(timers.std_now());
                OfSmithy(TicklessSleep::new(timers).sleep(after))
            },
        },
    );
}
