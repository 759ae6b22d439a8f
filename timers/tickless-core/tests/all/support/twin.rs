//! The naive twin of the bases: a flat list of timers, without event devices. Each result is
//! computed from all timers.

use super::REACHES;
use super::timers::Family;
use std::cmp::Reverse;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{IfPending, Options, Settings, StartError, Started, WheelEvents};
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns, Window};

pub struct Twin {
    pub settings: Settings,
    pub timers: Vec<TwinTimer>,
    pub bases: Vec<TwinBase>,
    pub counts: Counts,
    /// Counts armings and insertions into the queue, for their order.
    sequence: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub armed: u64,
    pub rearmed: u64,
    pub cancelled: u64,
    pub fired: u64,
}

#[derive(Clone, Debug)]
pub struct TwinTimer {
    pub family: Family,
    pub shut: bool,
    pub base: Option<CpuId>,
    pub pending: Option<Pending>,
    pub running: bool,
    /// Whether it is pending on no base, because an operation is moving it.
    pub in_transit: bool,
}

impl TwinTimer {
    fn new(family: Family) -> TwinTimer {
        let (base, pending) = (None, None);
        TwinTimer { family, shut: false, base, pending, running: false, in_transit: false }
    }
}

/// Whether a start pushed the timer out without a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushedOut {
    Yes,
    /// It took a lock; other operations may have happened before.
    No {
        interrupted: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub window: Window,
    pub wakes: Wakes,
    /// When it was armed: the clock's time under the base's lock.
    pub at: Ns,
    sequence: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In the queue, behind those with a lower number.
    Queued(u64),
    /// Queued when the next pass begins.
    Late,
    /// In the wheel, due at this tick; the deadline is in this eighth of the granule. It may be
    /// beyond the wheel's reach: then the timer is placed again at that tick.
    Bucket { due: u64, level: usize, eighth: u64 },
    /// In the wheel, armed for the past when its clock was at this tick, in this pass.
    Overdue { due: u64, pass: u64 },
    /// In the wheel, and pushed out there: examined at this tick, after this pass, and moved then.
    /// The twin does not know how its due tick is rounded then; it fires by the tick `latest`.
    Loose { due: u64, pass: u64, latest: u64, moved: bool },
}

#[derive(Clone, Debug, Default)]
pub struct TwinBase {
    pub handler: Option<Handler>,
    pub backing_off: bool,
    /// When the last handler ended.
    pub handled_at: Ns,
    pub events: u64,
    pub spurious: u64,
    pub hangs: u64,
    clock: u64,
    passes: u64,
    /// The time of the last pass, and whether it has fired all its precise timers.
    pass: Option<(Ns, bool)>,
    target: u64,
}

#[derive(Clone, Debug)]
pub struct Handler {
    pub fired: u64,
    /// The time of its current pass.
    pub now: Ns,
    passes: u32,
    /// The timer whose callback runs, and its arming.
    pub running: Option<(usize, Pending)>,
    result: Option<CallbackResult>,
}

impl Twin {
    pub fn new(settings: Settings, cpus: u16, families: &[Family], now: Ns) -> Twin {
        let clock = now.0 / settings.tick.length().as_nanos() as u64;
        let base = TwinBase { clock, target: clock, ..TwinBase::default() };
        Twin {
            settings,
            timers: families.iter().map(|&family| TwinTimer::new(family)).collect(),
            bases: vec![base; cpus.into()],
            counts: Counts::default(),
            sequence: 0,
        }
    }

    /// Returns the length of a tick in nanoseconds.
    pub fn tick(&self) -> u64 {
        self.settings.tick.length().as_nanos() as u64
    }

    pub fn renew(&mut self, id: usize, family: Family) {
        self.timers[id] = TwinTimer::new(family);
    }

    pub fn start(
        &mut self,
        id: usize,
        window: Window,
        (now, passed, present): (Ns, Ns, Ns),
        here: CpuId,
        options: Options,
        push_out: PushedOut,
    ) -> Result<Started, StartError> {
        if let Some(cpu) = options.pinned
            && cpu.index() >= self.bases.len()
        {
            return Err(StartError::NoSuchBase(cpu));
        }
        let window = Window::new(window.soft, window.hard);
        let timer = &self.timers[id];
        if timer.shut {
            return Err(StartError::Shut);
        }
        if let Some(pending) = timer.pending {
            let kept = match (options.pending, timer.family) {
                (IfPending::Rearm, _) => false,
                (IfPending::Leave, _) => true,
                (IfPending::Reduce, Family::Coarse) => window.soft >= pending.window.soft,
                (IfPending::Reduce, Family::Precise) => window.hard >= pending.window.hard,
            };
            if kept {
                return Ok(Started::Kept);
            }
        }
        if let Some(may) = self.may_push_out(id, window.soft, now, options) {
            let is_as_it_was = push_out != PushedOut::No { interrupted: true };
            let is_pushed_out = push_out == PushedOut::Yes;
            assert!(
                !is_as_it_was || is_pushed_out == may,
                "is timer {id} pushed out? {push_out:?}"
            );
        }
        // Without a lock no other operation comes in between.
        if push_out == PushedOut::Yes {
            self.push_out(id, window.soft);
            return Ok(Started::Pending);
        }
        let now = now.min(passed);
        let timer = &self.timers[id];
        let stays = if timer.running { timer.base } else { None };
        let base = stays.unwrap_or(options.pinned.unwrap_or(here));
        let was_pending = timer.pending.is_some();
        self.place(id, base, window, now, options.wakes);
        self.timers[id].pending.as_mut().expect("it was placed").at = present;
        self.counts.armed += u64::from(!was_pending);
        self.counts.rearmed += u64::from(was_pending);
        Ok(if was_pending { Started::Pending } else { Started::Idle })
    }

    /// Returns whether this start may push out without a lock; `None` if that depends on a bucket
    /// that the twin does not know.
    fn may_push_out(&self, id: usize, deadline: Ns, now: Ns, options: Options) -> Option<bool> {
        let (timer, Settings { push_out, policy, tick, .. }) = (&self.timers[id], self.settings);
        let pending = timer.pending.filter(|pending| {
            timer.family == Family::Coarse
                && (push_out, policy) == (PushOut::Lazy, Policy::Lazy)
                && options.pending == IfPending::Rearm
                && options.wakes == pending.wakes
                && options.pinned.is_none_or(|cpu| timer.base == Some(cpu))
                && deadline >= pending.window.soft
        });
        let Some(pending) = pending else { return Some(false) };
        let level = match pending.place {
            Place::Bucket { level, .. } => level,
            Place::Overdue { .. } => 0,
            _ => return None,
        };
        // At least the distance of timers on the bucket's level.
        let least = if level == 0 { 0 } else { (8u64 << (3 * level)).saturating_mul(32) };
        Some(u128::from(deadline.since(now).0) * 33 >= u128::from(least) * tick.length().as_nanos())
    }

    /// Pushes a pending timer out without moving it.
    fn push_out(&mut self, id: usize, deadline: Ns) {
        let tick = deadline.0.div_ceil(self.tick());
        let Some(pending) = &mut self.timers[id].pending else { panic!("timer {id} is idle") };
        let (due, pass, moved) = match pending.place {
            Place::Bucket { due, .. } => (due, 0, false),
            Place::Overdue { due, pass } => (due, pass, false),
            Place::Loose { due, pass, moved, .. } => (due, pass, moved),
            Place::Queued(_) | Place::Late => panic!("timer {id} is not coarse"),
        };
        // As if it were armed when its bucket comes due.
        let beyond = tick.saturating_sub(due);
        let latest = if beyond == 0 { due } else { tick + beyond * 33 / 256 + 1 };
        pending.place = Place::Loose { due, pass, latest, moved };
        pending.window = Window::at(deadline);
    }

    /// Returns whether this base has a timer of which the twin does not know when it is examined.
    pub fn is_loose(&self, cpu: CpuId) -> bool {
        self.on(cpu).any(|(_, pending)| matches!(pending.place, Place::Loose { moved: true, .. }))
    }

    pub fn cancel(&mut self, id: usize) -> Cancel {
        let timer = &mut self.timers[id];
        let was_pending = timer.pending.take().is_some();
        self.counts.cancelled += u64::from(was_pending);
        match (timer.running, was_pending) {
            (true, _) => Cancel::Running,
            (false, true) => Cancel::Pending,
            (false, false) => Cancel::Idle,
        }
    }

    pub fn shutdown(&mut self, id: usize) -> Cancel {
        self.timers[id].shut = true;
        self.cancel(id)
    }

    /// Returns whether this timer must be active to every observer.
    pub fn must_be_active(&self, id: usize) -> bool {
        let timer = &self.timers[id];
        if timer.pending.is_some() {
            return true;
        }
        let Some(base) = timer.base.filter(|_| timer.running) else { return false };
        let handler = self.bases[base.index()].handler.as_ref();
        match handler.and_then(|handler| handler.result) {
            Some(CallbackResult::Done) => false,
            Some(CallbackResult::Restart(_)) => !timer.shut,
            None => true,
        }
    }

    /// Returns the latest time at which the event device must come for a base.
    pub fn earliest(&self, cpu: CpuId) -> Ns {
        self.on(cpu).map(|(id, _)| self.expiry(id)).min().unwrap_or(Ns::NEVER)
    }

    /// Returns when the event device must come for a pending timer. A due coarse timer counts as
    /// due since the time of its base's clock.
    pub fn expiry(&self, id: usize) -> Ns {
        let timer = &self.timers[id];
        let (Some(pending), Some(base)) = (timer.pending, timer.base) else { return Ns::NEVER };
        let clock = self.bases[base.index()].clock.saturating_mul(self.tick());
        match pending.place {
            Place::Queued(_) | Place::Late => pending.window.hard,
            _ => self.asked_for(id).max(Ns(clock)),
        }
    }

    /// Returns the deadline of a pending coarse timer, otherwise zero.
    pub fn coarse_deadline(&self, id: usize) -> Ns {
        let timer = &self.timers[id];
        let pending = timer.pending.filter(|_| timer.family == Family::Coarse);
        pending.map_or(Ns::ZERO, |pending| pending.window.soft)
    }

    /// Returns the latest time at which the event device may come for a pending timer. A timer
    /// beyond the wheel's reach needs no event of its own at which it is placed again.
    pub fn wakes_by(&self, id: usize) -> Ns {
        match self.timers[id].pending {
            Some(Pending { place: Place::Bucket { .. }, window, .. }) => {
                self.expiry(id).max(window.soft)
            }
            _ => self.expiry(id),
        }
    }

    /// Returns when the event device was requested to come for a pending timer.
    pub fn asked_for(&self, id: usize) -> Ns {
        let Some(pending) = self.timers[id].pending else { return Ns::NEVER };
        let due = match pending.place {
            Place::Queued(_) | Place::Late => return pending.window.hard,
            Place::Loose { latest, moved: true, .. } => latest,
            Place::Bucket { due, .. } | Place::Overdue { due, .. } | Place::Loose { due, .. } => {
                due
            }
        };
        let silent = self.settings.wheel == WheelEvents::Tick || pending.wakes == Wakes::No;
        if silent { Ns::NEVER } else { Ns(due.saturating_mul(self.tick())) }
    }

    pub fn on(&self, cpu: CpuId) -> impl Iterator<Item = (usize, Pending)> {
        let here = move |timer: &TwinTimer| {
            timer.pending.filter(|_| timer.base == Some(cpu) && !timer.in_transit)
        };
        let numbered = self.timers.iter().enumerate();
        numbered.filter_map(move |(id, timer)| Some((id, here(timer)?)))
    }

    pub fn begin_handler(&mut self, cpu: CpuId, now: Ns) {
        let base = &mut self.bases[cpu.index()];
        assert!(base.handler.is_none());
        base.events += 1;
        base.backing_off = false;
        base.handler = Some(Handler { fired: 0, now, passes: 0, running: None, result: None });
        self.begin_pass(cpu, now);
    }

    /// Returns the next timer that fires, perhaps after further passes. A timer that was pushed out
    /// lazily is next if it is `seen`, since the twin does not know its order.
    pub fn next(&mut self, cpu: CpuId, now: Ns, seen: Option<usize>) -> Option<usize> {
        self.settle(cpu);
        loop {
            if let Some(id) = self.take_due(cpu, seen) {
                return Some(id);
            }
            let earliest = self.end_pass(cpu).min(self.soonest(cpu, seen));
            let base = &mut self.bases[cpu.index()];
            let handler = base.handler.as_mut()?;
            handler.passes += 1;
            if earliest > now {
                base.spurious += u64::from(handler.fired == 0);
                return None;
            }
            if handler.passes >= self.settings.limits.passes {
                base.hangs += 1;
                base.backing_off = true;
                return None;
            }
            self.begin_pass(cpu, now);
        }
    }

    /// Returns when a timer that the wheel has moved may be due at the earliest, which may have
    /// begun the pass in which `seen` fires.
    fn soonest(&self, cpu: CpuId, seen: Option<usize>) -> Ns {
        let moved = self.on(cpu).filter(|(_, pending)| {
            seen.is_some() && matches!(pending.place, Place::Loose { moved: true, .. })
        });
        moved.map(|(_, pending)| pending.window.soft).min().unwrap_or(Ns::NEVER)
    }

    /// Ends a handler, after [`next`](Twin::next) has returned `None`.
    pub fn end_handler(&mut self, cpu: CpuId, now: Ns) {
        let base = &mut self.bases[cpu.index()];
        base.handler = None;
        base.handled_at = now;
    }

    pub fn returned(&mut self, cpu: CpuId, result: CallbackResult) {
        if let Some(handler) = &mut self.bases[cpu.index()].handler {
            handler.result = Some(result);
        }
    }

    /// Applies the result of the last callback.
    fn settle(&mut self, cpu: CpuId) {
        let Some(handler) = &mut self.bases[cpu.index()].handler else { return };
        let (now, result) = (handler.now, handler.result.take());
        let Some((id, Pending { wakes, .. })) = handler.running.take() else { return };
        let timer = &self.timers[id];
        if let Some(CallbackResult::Restart(window)) = result
            && timer.pending.is_none()
            && !timer.shut
        {
            self.place(id, cpu, Window::new(window.soft, window.hard), now, wakes);
            self.counts.armed += 1;
        }
        self.timers[id].running = false;
    }

    fn take_due(&mut self, cpu: CpuId, seen: Option<usize>) -> Option<usize> {
        let id = loop {
            let id = self.due(cpu, seen)?;
            if !self.is_placed_again(cpu, id) {
                break id;
            }
        };
        let pending = self.timers[id].pending.take()?;
        self.timers[id].running = true;
        self.counts.fired += 1;
        let handler = self.bases[cpu.index()].handler.as_mut()?;
        handler.fired += 1;
        handler.running = Some((id, pending));
        Some(id)
    }

    /// Places a timer again if its deadline was beyond the wheel's reach and has not come. Returns
    /// whether that was so.
    fn is_placed_again(&mut self, cpu: CpuId, id: usize) -> bool {
        let Some(Pending { window, wakes, at, place: Place::Bucket { due, .. }, .. }) =
            self.timers[id].pending
        else {
            return false;
        };
        let tick = self.tick();
        let base = &mut self.bases[cpu.index()];
        base.clock = base.clock.max(due);
        let is_far = window.soft.0.div_ceil(tick) > base.clock.min(base.target);
        if is_far {
            self.place(id, cpu, window, Ns::ZERO, wakes);
            self.timers[id].pending.as_mut().expect("it was placed").at = at;
        }
        is_far
    }

    /// Returns the next timer of this pass: precise ones by hard expiry, as long as the first may
    /// fire; then coarse ones by bucket, the coarser bucket first.
    fn due(&mut self, cpu: CpuId, seen: Option<usize>) -> Option<usize> {
        let base = &self.bases[cpu.index()];
        if let Some((now, false)) = base.pass {
            let queued = self.on(cpu).filter_map(|(id, pending)| match pending.place {
                Place::Queued(order) => Some((pending.window.hard, order, id, pending.window.soft)),
                _ => None,
            });
            match queued.min() {
                Some((_, _, id, soft)) if soft <= now => return Some(id),
                _ => self.bases[cpu.index()].pass = Some((now, true)),
            }
        }
        let base = &self.bases[cpu.index()];
        let due = self.on(cpu).filter_map(|(id, pending)| match pending.place {
            Place::Bucket { due, level, eighth } if due <= base.target => {
                Some((false, due, false, (Reverse(level), eighth), pending.sequence, id))
            }
            Place::Loose { latest, pass, .. } if latest <= base.target && pass < base.passes => {
                Some((true, latest, false, (Reverse(0), 0), pending.sequence, id))
            }
            Place::Overdue { due, pass } if pass < base.passes => {
                Some((false, due, true, (Reverse(0), 0), pending.sequence, id))
            }
            _ => None,
        });
        let due: Vec<_> = due.collect();
        // The order of pushed-out timers is unknown.
        let tick = self.tick();
        let may = |(_, pending): (usize, Pending)| match pending.place {
            Place::Loose { pass, .. } => {
                pending.window.soft.0.div_ceil(tick) <= base.target && pass < base.passes
            }
            _ => false,
        };
        if let Some(seen) = seen.filter(|&seen| self.on(cpu).any(|on| on.0 == seen && may(on))) {
            return Some(seen);
        }
        due.into_iter().min().map(|(.., id)| id)
    }

    fn begin_pass(&mut self, cpu: CpuId, now: Ns) {
        let tick = now.0 / self.tick();
        // Behind the timers that an unfinished pass has left.
        let behind = self.unfinished_at(cpu);
        let base = &mut self.bases[cpu.index()];
        base.passes += 1;
        base.pass = Some((now, false));
        base.target = base.target.max(tick).max(base.clock);
        if let Some(handler) = &mut base.handler {
            handler.now = now;
        }
        let late = self.on(cpu).filter(|(_, pending)| pending.place == Place::Late);
        let mut late: Vec<_> =
            late.map(|(id, pending)| (pending.window.hard, pending.sequence, id)).collect();
        late.sort();
        for (_, _, id) in late {
            self.sequence += 1;
            if let Some(pending) = &mut self.timers[id].pending {
                pending.place = Place::Queued(self.sequence);
                pending.window.hard = pending.window.hard.max(behind);
            }
        }
    }

    /// Returns the time of the last pass, if it has left a precise timer that it could have fired.
    fn unfinished_at(&self, cpu: CpuId) -> Ns {
        let queued = self.on(cpu).filter_map(|(_, pending)| match pending.place {
            Place::Queued(order) => Some((pending.window.hard, order, pending.window.soft)),
            _ => None,
        });
        match (self.bases[cpu.index()].pass, queued.min()) {
            (Some((seen, false)), Some((.., soft))) if soft <= seen => seen,
            _ => Ns::ZERO,
        }
    }

    fn end_pass(&mut self, cpu: CpuId) -> Ns {
        let base = &mut self.bases[cpu.index()];
        base.clock = base.clock.max(base.target);
        let (target, passes) = (base.target, base.passes);
        for timer in self.timers.iter_mut().filter(|timer| timer.base == Some(cpu)) {
            if let Some(Pending { place: Place::Loose { due, pass, moved, .. }, .. }) =
                &mut timer.pending
            {
                *moved |= *due <= target && *pass < passes;
            }
        }
        self.earliest(cpu)
    }

    fn place(&mut self, id: usize, cpu: CpuId, window: Window, now: Ns, wakes: Wakes) {
        self.sequence += 1;
        let sequence = self.sequence;
        let tick = self.tick();
        let base = &mut self.bases[cpu.index()];
        let (place, window, wakes) = match self.timers[id].family {
            Family::Precise => match base.pass {
                Some((seen, _)) if window.soft <= seen => (Place::Late, window, Wakes::Yes),
                _ => (Place::Queued(sequence), window, Wakes::Yes),
            },
            Family::Coarse => {
                base.clock = base.clock.max(now.0 / tick);
                let place = bucket(window.soft, tick, base);
                (place, Window::at(window.soft), wakes)
            }
        };
        let timer = &mut self.timers[id];
        timer.base = Some(cpu);
        timer.in_transit = false;
        timer.pending = Some(Pending { window, wakes, at: now, sequence, place });
    }
}

fn bucket(deadline: Ns, tick: u64, base: &TwinBase) -> Place {
    let due = deadline.0.div_ceil(tick);
    if due <= base.clock {
        return Place::Overdue { due: base.clock, pass: base.passes };
    }
    let distance = due - base.clock;
    let top = REACHES.len() - 1;
    let level = REACHES.iter().position(|&reach| distance <= reach).unwrap_or(top);
    let granule = 8u64.pow(level as u32);
    let eighth = if level == 0 { 0 } else { (due - 1) / (granule / 8) % 8 };
    let due = (base.clock + distance.min(REACHES[top])).next_multiple_of(granule);
    Place::Bucket { due, level, eighth }
}
