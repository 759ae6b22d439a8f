//! A simulated scheduler that ends time slices with timers: how many device writes Linux 7.1 saves.
//!
//! There are no published figures for comparison: the predictions were committed before any result
//! of that kernel was read (`docs/dev/predictions.md`). The load is like hackbench: groups of
//! senders and receivers, in which each sender writes to each receiver of its group in turn through
//! pipes. When the scheduler switches to a task while other tasks wait, it arms the timer
//! that ends the task's slice. That timer is *lazy*: the timer device is perhaps not programmed,
//! which means written with a new expiry, when the timer is cancelled or moves later.
//!
//! The compared policies decide when the event device (the CPU's timer hardware) is programmed:
//! those of a replay, without the eager one.

use super::result::Column;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use tickless_core::bases::Settings;
use tickless_core::rearm::DeviceCounts;
use tickless_core::time::{CpuId, Ns};
use tickless_machine::cpu;
use tickless_machine::engine::{self, Machine};
use tickless_machine::os::{Class, Clocked, Config, IdleTick, Kernel, Pipe, Skew};
use tickless_machine::ps::Ps;
use tickless_machine::spec::Spec;
use tickless_trace::replay::ReplayPolicy;

pub const POLICIES: &[ReplayPolicy] = ReplayPolicy::ALL.split_at(1).1;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// The simulated time until the last message was received, in milliseconds.
    pub ms: f64,
    pub switches: u64,
    pub device: DeviceCounts,
    pub digest: u64,
}

/// A load like that of the hackbench benchmark, and the tick rate of the simulated machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    pub hz: u64,
    pub groups: u16,
    pub messages: u32,
}

impl Load {
    /// Returns the load for which the first predictions were made: a group for every two CPUs.
    pub fn new(spec: &Spec, hz: u64, messages: u32) -> Load {
        let groups = (spec.costs().topology.cpus() / 2).max(1);
        Load { hz, groups, messages }
    }
}

/// The number of senders in a group, which is also the number of its receivers.
const SIDE: u16 = 5;
/// The pages of a pipe in Linux, and how many messages of 100 bytes fit on each.
const PIPE_PAGES: u64 = 16;
const MESSAGES_PER_PAGE: u64 = 40;
/// The cost of handling a message, without system calls, wakeups and locks. It is charged to the
/// sender and to the receiver.
const MESSAGE: Ns = Ns(700);

pub const COLUMNS: [Column<Outcome>; 5] = [
    ("switches", "switches", |run| run.switches as f64),
    ("writes", "per 1000 switches", |run| run.per_1000(run.device.writes)),
    ("events", "per 1000 switches", |run| run.per_1000(run.device.events)),
    ("for_nothing", "per 1000 switches", |run| run.per_1000(run.device.spurious)),
    ("ms", "ms", |run| run.ms),
];

impl Outcome {
    fn per_1000(&self, count: u64) -> f64 {
        count as f64 * 1e3 / self.switches.max(1) as f64
    }
}

/// Simulates the groups' messages under one policy until all have been received.
pub fn run(spec: &Spec, load: Load, policy: ReplayPolicy) -> io::Result<Outcome> {
    let Load { hz, groups, messages } = load;
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let config = Config {
        timers: policy.set(Settings::default()),
        tick: Ns(1_000_000_000 / hz.max(1)),
        skew: Skew { most: Ns::from_us(10), seed: 1 + spec.seed },
        idle: IdleTick::Keeps,
        grace: Ns::NEVER,
        clocked: Clocked::FromSwitch,
        has_slice_timer: true,
    };
    let kernel = Kernel::boot(&mut machine, config)?;
    let left = Rc::new(Cell::new(u32::from(groups) * u32::from(SIDE)));
    let ended = Rc::new(Cell::new(Ps::ZERO));
    // Each receiver of a group has a pipe, into which all senders of the group write.
    for _ in 0..groups {
        let pipe =
            || Rc::new(Pipe::new(&kernel, Ps::from_ns(MESSAGE), PIPE_PAGES, MESSAGES_PER_PAGE));
        let pipes: Rc<Vec<Rc<Pipe>>> = Rc::new((0..SIDE).map(|_| pipe()).collect());
        for side in 0..SIDE {
            let to = Rc::clone(&pipes);
            kernel.spawn(&mut machine, Class::Fair, None, move || {
                for _ in 0..messages {
                    to.iter().for_each(|pipe| pipe.write());
                }
            })?;
            let from = Rc::clone(&pipes[usize::from(side)]);
            let (left, ended) = (Rc::clone(&left), Rc::clone(&ended));
            kernel.spawn(&mut machine, Class::Fair, None, move || {
                for _ in 0..messages * u32::from(SIDE) {
                    from.read();
                }
                left.set(left.get() - 1);
                if left.get() == 0 {
                    ended.set(cpu::clock());
                    engine::stop();
                }
            })?;
        }
    }
    machine.run(Ns::from_secs(100));
    machine.finish();
    let views = (0..cpus).filter_map(|cpu| kernel.bases().view(CpuId(cpu)));
    let device = views.fold(DeviceCounts::default(), |sum, view| sum.plus(view.device));
    Ok(Outcome {
        ms: ended.get().as_ns_f64() / 1e6,
        switches: kernel.switches(),
        device,
        digest: machine.digest(),
    })
}
