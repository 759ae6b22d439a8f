//! Timers of either family behind one type.

use super::{TestPlatform, WatchedWord};
use std::sync::Arc;
use tickless_core::bases::cancel::{Cancel, Wait};
use tickless_core::bases::{Bases, Options, StartError, Started};
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::time::{Ns, Window};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    Coarse,
    Precise,
}

impl Family {
    pub const BOTH: [Family; 2] = [Family::Coarse, Family::Precise];
}

pub enum AnyTimer {
    Coarse(OwnedTimer<TestPlatform, WheelLink<WatchedWord>>),
    Precise(OwnedTimer<TestPlatform, QueueLink>),
}

/// Methods that call the method of the timer's family.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl AnyTimer {
            $(pub fn $name(&self, $($argument: $type),*) -> $result {
                match self {
                    AnyTimer::Coarse(timer) => timer.$name($($argument),*),
                    AnyTimer::Precise(timer) => timer.$name($($argument),*),
                }
            })*
        }
    };
}

forward! {
    start(window: Window, now: Ns, options: Options) -> Result<Started, StartError>;
    cancel() -> Cancel;
    try_cancel() -> Cancel;
    cancel_sync() -> Cancel;
    cancel_sync_unless(refuse: impl FnMut(Wait) -> Result<(), ()>) -> Result<Cancel, ()>;
    cancel_single_shot() -> Option<Cancel>;
    shutdown() -> Cancel;
    is_active() -> bool;
    is_pending() -> bool;
    is_running() -> bool;
}

impl AnyTimer {
    pub fn new(bases: &Arc<Bases<TestPlatform>>, family: Family, task: usize) -> AnyTimer {
        match family {
            Family::Coarse => AnyTimer::Coarse(OwnedTimer::new(bases, task)),
            Family::Precise => AnyTimer::Precise(OwnedTimer::new(bases, task)),
        }
    }
}

pub fn exactly(at: Ns) -> Window {
    Window::at(at)
}
