//! Timers of both kinds, for tests in which the kind makes no difference.

use std::time::Duration;
use tickless::callback::{Cancel, StartError, Started};
use tickless::time::Instant;
use tickless::{CancelError, Fired, HrTimer, Timeout, Timers};

pub enum AnyTimer {
    Coarse(Timeout),
    Precise(HrTimer),
}

impl AnyTimer {
    /// One timer of each kind with the same callback.
    pub fn both<F>(timers: &Timers, callback: F) -> [AnyTimer; 2]
    where
        F: FnMut(&mut Fired<'_>) + Send + Clone + 'static,
    {
        let coarse = timers.timeout(callback.clone());
        [AnyTimer::Coarse(coarse), AnyTimer::Precise(timers.hrtimer(callback))]
    }
}

/// Methods that call the method of the timer's kind.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {
        impl AnyTimer {
            $(pub fn $name(&self $(, $argument: $type)?) -> $result {
                match self {
                    AnyTimer::Coarse(timer) => timer.$name($($argument)?),
                    AnyTimer::Precise(timer) => timer.$name($($argument)?),
                }
            })*
        }
    };
}

forward! {
    start(after: Duration) -> Result<Started, StartError>;
    start_at(deadline: Instant) -> Result<Started, StartError>;
    reduce(after: Duration) -> Result<Started, StartError>;
    cancel() -> Cancel;
    try_cancel() -> Cancel;
    cancel_sync() -> Result<Cancel, CancelError>;
    cancel_single_shot() -> Result<Cancel, CancelError>;
    is_pending() -> bool;
    is_active() -> bool;
}
