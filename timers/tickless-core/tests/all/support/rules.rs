//! The rules for what an operation may do to the event devices: R1 to R6, independent of the core's
//! decisions. A rule compares the devices before and after an operation.

use super::TestPlatform;
use super::twin::Twin;
use tickless_core::bases::{BaseView, Bases};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};

/// The state of all devices and bases.
pub struct Snapshot {
    pub views: Vec<BaseView>,
    writes: Vec<u64>,
    armed: Vec<Ns>,
}

impl Snapshot {
    pub fn of(bases: &Bases<TestPlatform>) -> Snapshot {
        let cpus = || (0..bases.count()).map(|cpu| CpuId(cpu as u16));
        let world = bases.platform();
        Snapshot {
            views: cpus().filter_map(|cpu| bases.view(cpu)).collect(),
            writes: cpus().map(|cpu| world.writes(cpu)).collect(),
            armed: cpus().map(|cpu| world.armed(cpu)).collect(),
        }
    }

    fn writes_since(&self, before: &Snapshot, cpu: usize) -> u64 {
        self.writes[cpu] - before.writes[cpu]
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub here: CpuId,
    pub now: Ns,
    /// The base on which the timer was pending, and when its device had to come.
    pub from: Option<(CpuId, Ns)>,
    /// The base on which it is pending now, and when its device has to come.
    pub to: Option<(CpuId, Ns)>,
    /// The deadline of a pending coarse timer, otherwise zero.
    pub deadline: Ns,
}

pub fn check_operation(twin: &Twin, before: &Snapshot, after: &Snapshot, operation: Operation) {
    for cpu in 0..after.writes.len() {
        let writes = after.writes_since(before, cpu);
        check_base(twin, before, after, operation, CpuId(cpu as u16), writes);
        if writes == 0 {
            assert_eq!(
                after.armed[cpu], before.armed[cpu],
                "R2: a device that is not written stays"
            );
        }
    }
}

fn check_base(
    twin: &Twin,
    before: &Snapshot,
    after: &Snapshot,
    operation: Operation,
    cpu: CpuId,
    writes: u64,
) {
    let policy = twin.settings.policy;
    let Operation { here, from, to, .. } = operation;
    let from = from.filter(|from| from.0 == cpu).map(|from| from.1);
    let to = to.filter(|to| to.0 == cpu).map(|to| to.1);
    let base = &twin.bases[cpu.index()];
    if base.handler.is_some() {
        assert_eq!(writes, 0, "R5: nothing is written in the handler");
        return;
    }
    if base.backing_off {
        assert_eq!(writes, 0, "R7: a device that backs off is left alone");
        return;
    }
    let armed = before.armed[cpu.index()];
    // An event that comes as soon as possible is not moved (R8).
    let imminent = armed <= operation.now.after(twin.settings.limits.min_delta);
    let earliest = after.views[cpu.index()].earliest.to_ns();
    match (from, to) {
        (None, None) => assert_eq!(writes, 0, "an operation on another base wrote this device"),
        (Some(_), None) if cpu != here => assert_eq!(writes, 0, "R3: another CPU's removal"),
        (Some(old), None) => {
            let programs = policy != Policy::Lazy && old == armed;
            assert!(writes <= u64::from(programs), "R2, R12: a removal wrote {writes} times");
            if programs && earliest > armed && !imminent {
                assert_eq!(writes, 1, "R12: a removal of the first timer did not program");
            }
        }
        (from, Some(new)) => {
            // A timer beyond the wheel's reach needs no event at which it is placed again.
            if new < armed && armed <= operation.deadline {
                return;
            }
            let local_first = from == Some(armed) && cpu == here;
            let twice = policy == Policy::Eager && from.is_some() && cpu == here;
            assert!(writes <= 1 + u64::from(twice), "R4: a start wrote {writes} times");
            if policy != Policy::Eager && earliest == armed {
                assert_eq!(writes, 0, "R4: the device was armed correctly already");
            }
            if policy == Policy::RestartAware && local_first && earliest > armed && !imminent {
                assert_eq!(writes, 1, "R12: a restart of the first timer did not program");
            }
            if from.is_none() || cpu != here || policy == Policy::Lazy {
                let is = after.armed[cpu.index()];
                check_start(twin, operation.now, armed, is, new, writes);
            }
        }
    }
}

/// R2: a start at or after the armed time does not program, an earlier one does, unless the device
/// cannot come earlier (R8). R11: it is programmed within its limits.
fn check_start(twin: &Twin, now: Ns, was: Ns, is: Ns, new: Ns, writes: u64) {
    let limits = twin.settings.limits;
    let nearest = now.after(limits.min_delta);
    if new >= was {
        assert_eq!(writes, 0, "R2: a start at or after what is armed wrote");
    } else if was <= nearest {
        assert_eq!(writes, 0, "R8: an event that can come no earlier was reprogrammed");
    } else {
        assert_eq!(writes, 1, "R2: a start before what is armed did not write");
        assert_eq!(is, new.max(nearest).min(now.after(limits.max_delta)), "R11: clamped");
    }
}

/// Checks a base between operations: R1, and that it has recorded its device correctly.
pub fn check_standing(world: &TestPlatform, twin: &Twin, cpu: CpuId, view: &BaseView) {
    let (armed, next) = (view.armed.to_ns(), view.earliest.to_ns());
    let base = &twin.bases[cpu.index()];
    if base.handler.is_some() {
        assert_eq!(armed, Ns::NEVER, "R5: in the handler armed counts as never");
        return;
    }
    assert_eq!(world.armed(cpu), armed, "the device is not armed for what its base has recorded");
    let earliest = twin.earliest(cpu);
    assert!(next <= earliest, "W3: the next event of {cpu:?} is late");
    assert!(next == earliest || twin.is_loose(cpu), "W3: the next event of {cpu:?}");
    let limits = twin.settings.limits;
    let written = world.written_at(cpu);
    if base.backing_off {
        let longest = limits.backoff_max.max(limits.min_delta);
        assert!(armed <= written.after(longest), "R7: backs off until {armed:?}");
        return;
    }
    for (id, pending) in twin.on(cpu) {
        // The earliest time for which the device could be armed when the timer was armed.
        let asked = pending.at.max(base.handled_at).max(written).after(limits.min_delta);
        let expiry = twin.wakes_by(id);
        assert!(
            armed <= expiry.max(asked),
            "R1: {cpu:?} is armed for {armed:?}, timer {id} is due at {expiry:?}"
        );
    }
}
