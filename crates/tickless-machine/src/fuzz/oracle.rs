//! What was asked for, and what came of it: the checkers of a history.

use super::{FaultCounts, History, LATE_MAX};
use crate::os::Kernel;
use crate::platform::{self, Sim, SimWord};
use crate::ps::Ps;
use crate::random::Random;
use crate::{cpu, engine};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{Family, Options, Started};
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::time::{CpuId, Ns, Window};

/// What has been asked for, and what came of it.
#[derive(Default)]
pub(super) struct Oracle {
    violation: RefCell<Option<(Ns, String)>>,
    armed: Cell<u64>,
    fired: Cell<u64>,
    cancelled: Cell<u64>,
    pub(super) faults: Rc<RefCell<FaultCounts>>,
}

impl Oracle {
    /// Notes the first thing that is wrong, and ends the run.
    pub(super) fn fail(&self, what: String) {
        let mut violation = self.violation.borrow_mut();
        if violation.is_none() {
            *violation = Some((engine::clock().to_ns(), what));
        }
        engine::stop();
    }

    pub(super) fn has_violation(&self) -> bool {
        self.violation.borrow().is_some()
    }

    pub(super) fn take_violation(&self) -> Option<(Ns, String)> {
        self.violation.borrow_mut().take()
    }

    pub(super) fn has_armed(&self) {
        self.armed.set(self.armed.get() + 1);
    }

    pub(super) fn has_cancelled(&self) {
        self.cancelled.set(self.cancelled.get() + 1);
    }

    /// No rule about locks may have been broken, and none is held where anything is called.
    pub(super) fn check_locks(&self) {
        if let Some(rule) = platform::broken_rule() {
            self.fail(rule.to_string());
        }
        if platform::locks_held() > 0 {
            self.fail("called under a lock".to_string());
        }
    }

    /// What the bases say of lost events.
    pub(super) fn count_noticed(&self, kernel: &Kernel) {
        let bases = kernel.bases();
        let views = (0..bases.count() as u16).filter_map(|cpu| bases.view(CpuId(cpu)));
        let mut faults = self.faults.borrow_mut();
        faults.noticed = views.map(|view| view.device.lost).sum();
        (faults.deaths, faults.deaths_in_callbacks) = kernel.power_offs();
    }

    pub(super) fn history(&self, cpus: u16, digest: u64) -> History {
        let (armed, fired, cancelled) = (self.armed.get(), self.fired.get(), self.cancelled.get());
        History { cpus, armed, fired, cancelled, faults: *self.faults.borrow(), digest }
    }
}

/// What is known of one timer. Its program is the only one that starts and cancels it.
#[derive(Default)]
pub(super) struct Fact {
    /// The armings that have not fired yet, oldest first: which it is, and when it may fire. One
    /// whose callback has begun stays until that says so.
    pub(super) due: RefCell<Vec<(u64, Ns)>>,
    pub(super) armings: Cell<u64>,
    pub(super) running: Cell<bool>,
    /// On which CPU it ran last.
    pub(super) ran_on: Cell<u16>,
}

impl Fact {
    /// Is anything overdue that nothing excuses? A timer that runs stays on its base until its
    /// callback is over (X2), also if its CPU is off.
    pub(super) fn overdue(&self, now: Ns) -> Option<Ns> {
        let due = self.due.borrow();
        let mut late = due.iter().filter(|due| due.1.after(LATE_MAX) < now);
        late.next().filter(|_| !self.running.get()).map(|due| due.1)
    }
}

/// One timer of either family, and what is known of it.
pub(super) struct Subject {
    pub(super) timer: Box<dyn Armed>,
    pub(super) fact: Rc<Fact>,
}

/// What both families can do.
pub(super) trait Armed {
    fn start(&self, window: Window, now: Ns, options: Options) -> Option<Started>;
    fn cancel(&self, how: How) -> Cancel;
}

/// How a timer is cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    Once,
    UnlessRunning,
    AndWait,
}

impl<L: Family<Sim>> Armed for OwnedTimer<Sim, L> {
    fn start(&self, window: Window, now: Ns, options: Options) -> Option<Started> {
        self.start(window, now, options).ok()
    }

    fn cancel(&self, how: How) -> Cancel {
        match how {
            How::Once => self.cancel(),
            How::UnlessRunning => self.try_cancel(),
            How::AndWait => self.cancel_sync(),
        }
    }
}

/// A timer of either family, with a callback that tells the oracle.
pub(super) fn subject(kernel: &Rc<Kernel>, oracle: &Rc<Oracle>, random: &mut Random) -> Subject {
    let fact = Rc::new(Fact::default());
    let takes = Ps::from_ns(Ns([100, 2_000, 60_000, 300_000][random.below(4) as usize]));
    let (seen, oracle) = (Rc::clone(&fact), Rc::clone(oracle));
    let callback = kernel.callback(move |_| {
        // By the machine's clock, not by what the core says that it is.
        fire(&oracle, &seen, platform::cycle_counter());
        oracle.check_locks();
        cpu::work(takes);
        seen.running.set(false);
        CallbackResult::Done
    });
    let bases = kernel.bases();
    let timer: Box<dyn Armed> = if random.below(2) == 0 {
        Box::new(OwnedTimer::<Sim, QueueLink>::new(bases, callback))
    } else {
        Box::new(OwnedTimer::<Sim, WheelLink<SimWord>>::new(bases, callback))
    };
    Subject { timer, fact }
}

fn fire(oracle: &Oracle, fact: &Fact, now: Ns) {
    oracle.fired.set(oracle.fired.get() + 1);
    fact.ran_on.set(engine::here().0);
    if fact.running.replace(true) {
        oracle.fail("a callback overlaps itself".to_string());
    }
    let mut due = fact.due.borrow_mut();
    match due.iter().position(|due| due.1 <= now) {
        Some(place) => {
            due.remove(place);
        }
        None if due.is_empty() => oracle.fail("a callback that nobody asked for".to_string()),
        None => oracle.fail(format!("a callback at {now:?}, due only at {due:?}")),
    }
}
