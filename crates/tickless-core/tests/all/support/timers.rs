//! Timers of either family behind one type.

use super::{TestPlatform, WatchedWord};
use std::sync::Arc;
use tickless_core::bases::cancel::{Cancel, Occupied};
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

macro_rules! of_either {
    ($timer:expr, $method:ident $arguments:tt) => {
        match $timer {
            AnyTimer::Coarse(timer) => timer.$method $arguments,
            AnyTimer::Precise(timer) => timer.$method $arguments,
        }
    };
}

impl AnyTimer {
    pub fn new(bases: &Arc<Bases<TestPlatform>>, family: Family, task: usize) -> AnyTimer {
        match family {
            Family::Coarse => AnyTimer::Coarse(OwnedTimer::new(bases, task)),
            Family::Precise => AnyTimer::Precise(OwnedTimer::new(bases, task)),
        }
    }

    pub fn start(&self, window: Window, now: Ns, options: Options) -> Result<Started, StartError> {
        of_either!(self, start(window, now, options))
    }

    pub fn cancel(&self) -> Cancel {
        of_either!(self, cancel())
    }

    pub fn try_cancel(&self) -> Cancel {
        of_either!(self, try_cancel())
    }

    pub fn cancel_sync(&self) -> Cancel {
        of_either!(self, cancel_sync())
    }

    pub fn cancel_sync_unless<E>(
        &self,
        refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        of_either!(self, cancel_sync_unless(refuse))
    }

    pub fn cancel_single_shot(&self) -> Option<Cancel> {
        of_either!(self, cancel_single_shot())
    }

    pub fn shutdown(&self) -> Cancel {
        of_either!(self, shutdown())
    }

    pub fn is_active(&self) -> bool {
        of_either!(self, is_active())
    }

    pub fn is_pending(&self) -> bool {
        of_either!(self, is_pending())
    }

    pub fn is_running(&self) -> bool {
        of_either!(self, is_running())
    }
}

pub fn exactly(at: Ns) -> Window {
    Window::at(at)
}
