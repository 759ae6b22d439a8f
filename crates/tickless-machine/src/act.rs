//! How a program on a simulated CPU acts on its machine: each act waits for the CPU's turn, and for
//! the interrupts that are due before it.

use crate::coherence::{Access, Found};
use crate::deliver::deliver;
use crate::fiber;
use crate::ps::Ps;
use crate::state::cpu::Mode;
use crate::state::cpu::WaitsFor;
use crate::world::{Go, Room, WordSlot, World, with};
use tickless_core::time::CpuId;

/// Does something as the CPU that runs, once it is that CPU's turn and no interrupt is due.
/// `ahead` says by how much it may run ahead. `None` outside of any simulated CPU.
#[inline]
pub(crate) fn act<R>(
    ahead: impl Fn(&mut World, usize) -> Ps,
    f: impl FnOnce(&mut World, usize) -> R,
) -> Option<R> {
    let mut f = Some(f);
    attempt(|world, cpu| {
        let slack = ahead(world, cpu);
        match world.may_act(cpu, slack) {
            Go::Now => Ok(f.take().map(|f| f(world, cpu))),
            wait => Err(wait),
        }
    })
    .flatten()
}

/// Tries something as the CPU that runs, again after what it had to wait for, until it is done.
#[inline]
fn attempt<R>(mut f: impl FnMut(&mut World, usize) -> Result<R, Go>) -> Option<R> {
    loop {
        let done = with(|world| {
            let cpu = world.running?;
            Some(f(world, cpu))
        });
        match done.flatten()? {
            Ok(result) => return Some(result),
            Err(Go::Interrupt) => deliver(),
            Err(_) => fiber::suspend(),
        }
    }
}

/// Accesses a word's line as the CPU that runs.
#[inline]
pub(crate) fn access(place: &WordSlot, access: Access) {
    access_in(place, Room::Shared, access);
}

/// The same for what is on a line of its own, whatever is beside it in the host's memory.
#[inline]
pub(crate) fn access_own(place: &WordSlot, access: Access) {
    access_in(place, Room::Own, access);
}

#[inline]
fn access_in(place: &WordSlot, room: Room, access: Access) {
    attempt(|world, cpu| {
        let line = world.line(place, room);
        let now = world.cpus[cpu].clock;
        let found = world.lines.find(line, CpuId(cpu as u16), access, now);
        let ahead = match found {
            Found::Here => world.nearest,
            Found::Away => Ps::ZERO,
        };
        match world.may_act(cpu, ahead) {
            Go::Now => {
                world.access(cpu, line, access, found);
                Ok(())
            }
            wait => Err(wait),
        }
    });
}

/// One turn of a waiting loop: parks until what the loop has read is written, or an interrupt
/// comes.
pub(crate) fn relax() {
    let parked = act(
        |_, _| Ps::ZERO,
        |world, cpu| {
            world.count(cpu);
            world.park()
        },
    );
    if parked == Some(true) {
        fiber::suspend();
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.mode = Mode::Running;
            }
        });
    }
}

/// The same, and counts how long it took.
pub(crate) fn relax_for(what: WaitsFor) {
    let clock = || with(|world| world.cpu().map(|cpu| cpu.clock)).flatten().unwrap_or(Ps::ZERO);
    let began = clock();
    relax();
    let waited = clock() - began;
    with(|world| world.cpu().map(|cpu| cpu.waited.add(what, waited)));
}

/// A program is about to take a lock. On a machine that comes to its end it gets no further,
/// unless it is in an interrupt handler. False outside of any simulated CPU, where nobody waits
/// for anybody.
pub(crate) fn begin_locking() -> bool {
    let may = with(|world| {
        let cpu = world.running?;
        let may = !world.draining || world.cpus[cpu].handlers > 0;
        if may {
            world.inside += 1;
        } else {
            world.switch_off(cpu);
        }
        Some(may)
    });
    match may.flatten() {
        Some(true) => true,
        None => false,
        Some(false) => {
            fiber::suspend();
            false
        }
    }
}

/// It has given the lock back.
pub(crate) fn end_locking() {
    with(|world| {
        if let Some(cpu) = world.cpu() {
            cpu.locks = cpu.locks.saturating_sub(1);
            world.inside = world.inside.saturating_sub(1);
        }
    });
}

/// Notes that a rule about locks is broken, if it is by this many that the CPU holds.
pub(crate) fn breaks_if(is_wrong: impl Fn(u32) -> bool, rule: &'static str) {
    with(|world| {
        if world.cpu().is_some_and(|cpu| is_wrong(cpu.locks)) {
            world.broken_rule.get_or_insert(rule);
        }
    });
}

/// Takes a line out of all caches, as `clflush` does; free of charge.
pub(crate) fn flush(place: &WordSlot) {
    with(|world| {
        let line = world.line(place, Room::Shared);
        world.lines.flush(line);
    });
}
