//! The naive twin: what bases promise, on a flat list of timers and without any device.
//!
//! Nothing here is fast or clever. Whatever is asked is found by looking at every timer.

use super::timers::Family;
use std::cmp::Reverse;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::Verdict;
use tickless_core::bases::{IfPending, Options, Settings, StartError, Started, WheelEvents};
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns, Window};

/// How far each level of the wheel reaches, in ticks, from the table in its documentation.
const REACHES: [u64; 9] =
    [63, 497, 3_972, 31_776, 254_201, 2_033_602, 16_268_816, 130_150_525, 1_040_187_392];

/// All timers and bases.
pub struct Twin {
    pub settings: Settings,
    pub timers: Vec<TwinTimer>,
    pub bases: Vec<TwinBase>,
    pub counts: Counts,
    /// Counts armings, and what goes into the queue, to tell which came first.
    sequence: u64,
}

/// What happened, over all bases.
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
    /// Pending, and on no base: an operation under way has taken it off one and not yet put it
    /// on another.
    pub in_transit: bool,
}

impl TwinTimer {
    fn new(family: Family) -> TwinTimer {
        let (base, pending) = (None, None);
        TwinTimer { family, shut: false, base, pending, running: false, in_transit: false }
    }
}

/// An arming.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub window: Window,
    pub wakes: Wakes,
    /// When it was armed.
    pub at: Ns,
    sequence: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In the queue, behind what went there before.
    Queued(u64),
    /// Waiting to be queued when the next pass begins.
    Late,
    /// In the wheel, due at this tick; its deadline is in this eighth of the granule.
    Bucket { due: u64, level: usize, eighth: u64, loose: bool },
    /// In the wheel, armed for the past when its clock stood at this tick, in this pass.
    Overdue { due: u64, pass: u64 },
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
    /// The wheel's clock, in ticks.
    clock: u64,
    passes: u64,
    /// The moment of the last pass, and whether its ranged timers are through.
    pass: Option<(Ns, bool)>,
    target: u64,
}

/// A handler under way.
#[derive(Clone, Debug)]
pub struct Handler {
    pub fired: u64,
    /// The moment of its present pass.
    pub now: Ns,
    passes: u32,
    /// Whose callback runs, with what arming.
    pub running: Option<(usize, Pending)>,
    /// What it has asked for, if it has returned.
    verdict: Option<Verdict>,
}

impl Twin {
    pub fn new(settings: Settings, cpus: u16, families: &[Family], now: Ns) -> Twin {
        let clock = now.0 / settings.tick.length().0;
        let base = TwinBase { clock, target: clock, ..TwinBase::default() };
        Twin {
            settings,
            timers: families.iter().map(|&family| TwinTimer::new(family)).collect(),
            bases: vec![base; cpus.into()],
            counts: Counts::default(),
            sequence: 0,
        }
    }

    /// A timer is gone and another takes its place.
    pub fn renew(&mut self, id: usize, family: Family) {
        self.timers[id] = TwinTimer::new(family);
    }

    pub fn start(
        &mut self,
        id: usize,
        window: Window,
        now: Ns,
        here: CpuId,
        options: Options,
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
                (IfPending::Reduce, Family::Ranged) => window.hard >= pending.window.hard,
            };
            if kept {
                return Ok(Started::Kept);
            }
        }
        let stays = if timer.running { timer.base } else { None };
        let base = stays.unwrap_or(options.pinned.unwrap_or(here));
        let was_pending = timer.pending.is_some();
        self.place(id, base, window, now, options.wakes);
        self.counts.armed += u64::from(!was_pending);
        self.counts.rearmed += u64::from(was_pending);
        Ok(if was_pending { Started::Pending } else { Started::Idle })
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

    /// Must this timer be seen as active from wherever one looks at it now?
    pub fn must_be_active(&self, id: usize) -> bool {
        let timer = &self.timers[id];
        if timer.pending.is_some() {
            return true;
        }
        let Some(base) = timer.base.filter(|_| timer.running) else { return false };
        let handler = self.bases[base.index()].handler.as_ref();
        match handler.and_then(|handler| handler.verdict) {
            Some(Verdict::Done) => false,
            Some(Verdict::Restart(_)) => !timer.shut,
            None => true,
        }
    }

    /// When the event device must come for a base at the latest.
    pub fn earliest(&self, cpu: CpuId) -> Ns {
        self.on(cpu).map(|(id, _)| self.expiry(id)).min().unwrap_or(Ns::NEVER)
    }

    /// When the event device must come for a pending timer. A coarse one that is due is so since
    /// its base's clock stands where it does.
    pub fn expiry(&self, id: usize) -> Ns {
        let timer = &self.timers[id];
        let (Some(pending), Some(base)) = (timer.pending, timer.base) else { return Ns::NEVER };
        let clock = self.bases[base.index()].clock.saturating_mul(self.settings.tick.length().0);
        match pending.place {
            Place::Queued(_) | Place::Late => pending.window.hard,
            Place::Bucket { .. } | Place::Overdue { .. } => self.asked_for(id).max(Ns(clock)),
        }
    }

    /// When the event device was asked to come for a pending timer.
    pub fn asked_for(&self, id: usize) -> Ns {
        let Some(pending) = self.timers[id].pending else { return Ns::NEVER };
        let due = match pending.place {
            Place::Queued(_) | Place::Late => return pending.window.hard,
            Place::Bucket { due, .. } | Place::Overdue { due, .. } => due,
        };
        let silent = self.settings.wheel == WheelEvents::Tick || pending.wakes == Wakes::No;
        if silent { Ns::NEVER } else { Ns(due.saturating_mul(self.settings.tick.length().0)) }
    }

    /// The timers pending on a base.
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
        base.handler = Some(Handler { fired: 0, now, passes: 0, running: None, verdict: None });
        self.begin_pass(cpu, now);
    }

    /// Which timer fires next; passes over the base go by on the way. `None` if none does.
    /// Timers that were pushed out lazily line up as it comes: one of these is next if `seen`
    /// is it.
    pub fn next(&mut self, cpu: CpuId, now: Ns, seen: Option<usize>) -> Option<usize> {
        self.settle(cpu);
        loop {
            if let Some(id) = self.take_due(cpu, seen) {
                return Some(id);
            }
            let earliest = self.end_pass(cpu);
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

    /// A handler has ended; call after [`next`](Twin::next) has said `None`.
    pub fn end_handler(&mut self, cpu: CpuId, now: Ns) {
        let base = &mut self.bases[cpu.index()];
        base.handler = None;
        base.handled_at = now;
    }

    /// A handler has ended, perhaps before everything that was due had fired; the ranged timers
    /// may be through.
    pub fn interrupt_handler(&mut self, cpu: CpuId, now: Ns, ranged_over: bool) {
        self.settle(cpu);
        if let Some((_, over)) = &mut self.bases[cpu.index()].pass {
            *over |= ranged_over;
        }
        self.end_pass(cpu);
        self.end_handler(cpu, now);
    }

    /// A callback has returned.
    pub fn returned(&mut self, cpu: CpuId, verdict: Verdict) {
        if let Some(handler) = &mut self.bases[cpu.index()].handler {
            handler.verdict = Some(verdict);
        }
    }

    /// Carries out what the last callback asked for.
    fn settle(&mut self, cpu: CpuId) {
        let Some(handler) = &mut self.bases[cpu.index()].handler else { return };
        let (now, verdict) = (handler.now, handler.verdict.take());
        let Some((id, Pending { wakes, .. })) = handler.running.take() else { return };
        let timer = &self.timers[id];
        if let Some(Verdict::Restart(window)) = verdict
            && timer.pending.is_none()
            && !timer.shut
        {
            self.place(id, cpu, Window::new(window.soft, window.hard), now, wakes);
            self.counts.armed += 1;
        }
        self.timers[id].running = false;
    }

    fn take_due(&mut self, cpu: CpuId, seen: Option<usize>) -> Option<usize> {
        let id = self.due(cpu, seen)?;
        let pending = self.timers[id].pending.take()?;
        self.timers[id].running = true;
        self.counts.fired += 1;
        let handler = self.bases[cpu.index()].handler.as_mut()?;
        handler.fired += 1;
        handler.running = Some((id, pending));
        Some(id)
    }

    /// Which timer comes next in this pass: ranged ones by hard expiry, as long as the first
    /// may fire; then coarse ones by bucket, the coarser bucket first.
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
            Place::Bucket { due, level, eighth, loose } if due <= base.target => {
                Some((loose, due, false, (Reverse(level), eighth), pending.sequence, id))
            }
            Place::Overdue { due, pass } if pass < base.passes => {
                Some((false, due, true, (Reverse(0), 0), pending.sequence, id))
            }
            _ => None,
        });
        let due: Vec<_> = due.collect();
        let loose = |id: usize| {
            let place = self.timers[id].pending.map(|pending| pending.place);
            matches!(place, Some(Place::Bucket { loose: true, .. }))
        };
        if let Some(seen) = seen.filter(|&seen| loose(seen) && due.iter().any(|d| d.5 == seen)) {
            return Some(seen);
        }
        due.into_iter().min().map(|(.., id)| id)
    }

    fn begin_pass(&mut self, cpu: CpuId, now: Ns) {
        let tick = now.0 / self.settings.tick.length().0;
        // Behind what a pass that stopped early has left.
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

    /// The moment of the last pass, if it has left a ranged timer that it could have fired.
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
        self.earliest(cpu)
    }

    fn place(&mut self, id: usize, cpu: CpuId, window: Window, now: Ns, wakes: Wakes) {
        self.sequence += 1;
        let sequence = self.sequence;
        let old = self.timers[id].pending.filter(|_| self.timers[id].base == Some(cpu));
        let base = &mut self.bases[cpu.index()];
        let (place, window, wakes) = match self.timers[id].family {
            Family::Ranged => match base.pass {
                Some((seen, _)) if window.soft <= seen => (Place::Late, window, Wakes::Yes),
                _ => (Place::Queued(sequence), window, Wakes::Yes),
            },
            Family::Coarse => {
                let tick = self.settings.tick.length().0;
                let lazy = self.settings.push_out == PushOut::Lazy;
                let may_stay = lazy && self.settings.policy != Policy::Eager;
                let stays = old
                    .filter(|old| may_stay && old.wakes == wakes)
                    .and_then(|old| stay(old.window.soft, window.soft, now, tick, base, old.place));
                let old = old.map(|old| old.place);
                let place = stays.unwrap_or_else(|| {
                    base.clock = base.clock.max(now.0 / tick);
                    bucket(window.soft, tick, base, old.filter(|_| lazy))
                });
                (place, Window::new(window.soft, window.soft), wakes)
            }
        };
        let timer = &mut self.timers[id];
        timer.base = Some(cpu);
        timer.in_transit = false;
        timer.pending = Some(Pending { window, wakes, at: now, sequence, place });
    }
}

/// Where a lazily pushed-out timer stays: in its bucket, if it lies within the granule still and
/// the granule is no more than an eighth of what is ahead.
fn stay(old: Ns, deadline: Ns, now: Ns, tick: u64, base: &TwinBase, place: Place) -> Option<Place> {
    let Place::Bucket { due, level, eighth, .. } = place else { return None };
    let late = due.saturating_mul(tick).checked_sub(deadline.0)?;
    let ahead = deadline.0.saturating_sub(now.0.max((base.clock + 1).saturating_mul(tick)));
    let stays = due > base.clock && deadline >= old && late <= ahead / 8;
    stays.then_some(Place::Bucket { due, level, eighth, loose: true })
}

/// Where in the wheel a deadline belongs. `old` is where the timer is, if it may be left there
/// and only be noted to be due later.
fn bucket(deadline: Ns, tick: u64, base: &TwinBase, old: Option<Place>) -> Place {
    let due = deadline.0.div_ceil(tick);
    if due <= base.clock {
        return Place::Overdue { due: base.clock, pass: base.passes };
    }
    let distance = due - base.clock;
    let level = REACHES.iter().position(|&reach| distance <= reach);
    let level = level.expect("histories stay within the wheel's reach");
    let granule = 8u64.pow(level as u32);
    let eighth = if level == 0 { 0 } else { (due - 1) / (granule / 8) % 8 };
    let due = due.next_multiple_of(granule);
    let loose =
        matches!(old, Some(Place::Bucket { due: old, .. }) if old > base.clock && due >= old);
    Place::Bucket { due, level, eighth, loose }
}
