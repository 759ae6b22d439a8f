//! The oracle: checks each callback of a random test run, and each result of a call.

use super::history::{History, LATE_MAX};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Family, Options, Started};
use tickless_core::clock::discipline::{AHEAD_MAX, SPAN};
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::os::Kernel;
use tickless_machine::platform::{self, Sim, SimWord};
use tickless_machine::ps::Ps;
use tickless_machine::random::Random;
use tickless_machine::{cpu, engine};

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) violation: RefCell<Option<(Ns, String)>>,
    pub(super) history: RefCell<History>,
}

impl Oracle {
    pub(super) fn fail(&self, what: String) {
        let mut violation = self.violation.borrow_mut();
        if violation.is_none() {
            *violation = Some((cpu::clock().to_ns(), what));
        }
        engine::stop();
    }

    /// Checks that no program has broken a rule about locks, and that the running CPU holds no
    /// lock. Called in each callback, and after each call of the timer code.
    pub(super) fn check_locks(&self) {
        if let Some(rule) = platform::broken_rule() {
            self.fail(rule.to_string());
        }
        if platform::locks_held() > 0 {
            self.fail("called under a lock".to_string());
        }
    }

    /// Returns how far the timers' clock may be ahead of the machine's time.
    pub(super) fn ahead_max(&self) -> Ns {
        let faults = self.history.borrow().faults;
        Ns(AHEAD_MAX.0 * faults.suspends + SPAN.0 * (faults.stands + faults.rates))
    }

    /// Returns how far the timers' clock may be behind the machine's time: by what a slower counter
    /// lacks in a line of the clock, or by a line if two short suspends look like a rate.
    pub(super) fn behind_max(&self) -> Ns {
        let faults = self.history.borrow().faults;
        let by_rate = SPAN.0 * faults.slowed / (1_000 - faults.slowed);
        Ns(by_rate.max(SPAN.0 * faults.stands.saturating_sub(1)))
    }

    pub(super) fn count_noticed(&self, kernel: &Kernel) {
        let bases = kernel.bases();
        let views = (0..bases.count() as u16).filter_map(|cpu| bases.view(CpuId(cpu)));
        let faults = &mut self.history.borrow_mut().faults;
        faults.noticed = views.map(|view| view.device.lost).sum();
        (faults.deaths, faults.deaths_in_callbacks) = kernel.power_offs();
    }
}

/// What the oracle (the checker) knows about one timer. Only one program arms and cancels it.
#[derive(Default)]
pub(super) struct TimerRecord {
    /// The armings that have not fired, oldest first, each with its number and its earliest firing
    /// time. An arming is removed when its callback calls [`fire`].
    pub(super) due: RefCell<Vec<(u64, Ns)>>,
    pub(super) armings: Cell<u64>,
    pub(super) running: Cell<bool>,
    pub(super) ran_on: Cell<u16>,
}

impl TimerRecord {
    /// Returns the firing time of an arming that is too late. A timer whose callback is running
    /// never counts as late: a new arming takes effect only when that callback has returned, and
    /// its CPU may be off. X2: two callbacks of one timer never overlap, so the new arming waits
    /// for the running one.
    pub(super) fn overdue(&self, now: Ns, behind_max: Ns) -> Option<Ns> {
        let due = self.due.borrow();
        let mut late = due.iter().filter(|due| due.1.after(LATE_MAX).after(behind_max) < now);
        late.next().filter(|_| !self.running.get()).map(|due| due.1)
    }
}

pub(super) struct TestTimer {
    pub(super) timer: Box<dyn AnyTimer>,
    pub(super) record: Rc<TimerRecord>,
}

pub(super) trait AnyTimer {
    fn start(&self, window: Window, now: Ns, options: Options) -> Option<Started>;
    fn cancel(&self, how: CancelKind) -> Cancel;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CancelKind {
    Once,
    UnlessRunning,
    AndWait,
}

impl<L: Family<Sim>> AnyTimer for OwnedTimer<Sim, L> {
    fn start(&self, window: Window, now: Ns, options: Options) -> Option<Started> {
        self.start(window, now, options).ok()
    }

    fn cancel(&self, how: CancelKind) -> Cancel {
        match how {
            CancelKind::Once => self.cancel(),
            CancelKind::UnlessRunning => self.try_cancel(),
            CancelKind::AndWait => self.cancel_sync(),
        }
    }
}

pub(super) fn test_timer(
    kernel: &Rc<Kernel>,
    oracle: &Rc<Oracle>,
    random: &mut Random,
) -> TestTimer {
    let record = Rc::new(TimerRecord::default());
    let takes = Ps::from_ns(Ns([100, 2_000, 60_000, 300_000][random.below(4) as usize]));
    let (seen, oracle) = (Rc::clone(&record), Rc::clone(oracle));
    let callback = kernel.callback(move |_| {
        // Check against the simulated machine's time, not that which the tested code passes.
        fire(&oracle, &seen, platform::cycle_counter());
        oracle.check_locks();
        cpu::work(takes);
        seen.running.set(false);
        CallbackResult::Done
    });
    let bases = kernel.bases();
    let timer: Box<dyn AnyTimer> = if random.below(2) == 0 {
        Box::new(OwnedTimer::<Sim, QueueLink>::new(bases, callback))
    } else {
        Box::new(OwnedTimer::<Sim, WheelLink<SimWord>>::new(bases, callback))
    };
    TestTimer { timer, record }
}

fn fire(oracle: &Oracle, record: &TimerRecord, now: Ns) {
    oracle.history.borrow_mut().fired += 1;
    record.ran_on.set(cpu::here().0);
    if record.running.replace(true) {
        oracle.fail("a callback overlaps itself".to_string());
    }
    let mut due = record.due.borrow_mut();
    match due.iter().position(|due| due.1 <= now.after(oracle.ahead_max())) {
        Some(place) => {
            due.remove(place);
        }
        None if due.is_empty() => oracle.fail("a callback without an arming".to_string()),
        None => oracle.fail(format!("a callback at {now:?}, due only at {due:?}")),
    }
}
