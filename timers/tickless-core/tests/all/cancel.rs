//! X2, X5, X9, X10, R9 and R10: cancelling, shutting down, and activity.

use crate::support::history::{Plan, run};
use crate::support::random::{Rng, with_seeds};

/// Goal: each arming ends once, fired or cancelled, and every result is the twin's (X2, X5, X10,
/// R9, R10). Method: cancel-heavy histories with other operations at every lock.
#[test]
fn histories_account_for_every_arming() {
    with_seeds(if cfg!(miri) { 4 } else { 1_500 }, |seed| {
        let plan = Plan::random(&mut Rng::new(seed));
        run(Plan { starts: 5, timers: 2 + plan.timers / 3, ..plan }, seed);
    });
}
