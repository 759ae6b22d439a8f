//! A stage for single scenes: bases, a clock at one second, and short names for the usual moves.

use super::timers::{AnyTimer, Family, exactly};
use super::{World, on};
use std::sync::Arc;
use tickless_core::bases::expiry::{CallbackResult, Expired, Firing};
use tickless_core::bases::{Bases, Options, Settings, Started};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};

/// What the clock shows when a scene begins.
pub const START: Ns = Ns::from_secs(1);

/// Bases in their world.
pub struct Scene {
    pub bases: Arc<Bases<World>>,
}

impl Scene {
    pub fn new(settings: Settings, cpus: u16) -> Scene {
        Scene { bases: Arc::new(Bases::new(World::new(cpus, START), cpus, settings)) }
    }

    /// Two CPUs with this policy, and everything else as it comes.
    pub fn with_policy(policy: Policy) -> Scene {
        Scene::new(Settings { policy, ..Settings::default() }, 2)
    }

    pub fn world(&self) -> &World {
        self.bases.platform()
    }

    /// A timer whose callbacks will say that they are number `task`.
    pub fn timer(&self, family: Family, task: usize) -> AnyTimer {
        AnyTimer::new(&self.bases, family, task)
    }

    /// Starts a timer on a CPU, to fire this long after the scene began.
    pub fn start(&self, timer: &AnyTimer, cpu: CpuId, after: Ns) -> Started {
        self.start_with(timer, cpu, after, Options::default())
    }

    pub fn start_with(&self, timer: &AnyTimer, cpu: CpuId, after: Ns, options: Options) -> Started {
        let (at, now) = (START.after(after), self.world().time());
        on(cpu, || timer.start(exactly(at), now, options)).expect("a timer that is not shut down")
    }

    /// Moves the clock to so long after the scene began.
    pub fn go(&self, after: Ns) {
        self.world().set_time(START.after(after));
    }

    /// How long after the scene's beginning a device is armed for; `None` if it is not.
    pub fn armed(&self, cpu: CpuId) -> Option<Ns> {
        let armed = self.world().armed(cpu);
        (armed != Ns::NEVER).then(|| armed.since(START))
    }

    /// How often an operation writes a CPU's device.
    pub fn writes<R>(&self, cpu: CpuId, operation: impl FnOnce() -> R) -> u64 {
        let before = self.world().writes(cpu);
        operation();
        self.world().writes(cpu) - before
    }

    /// The handler of a CPU's event.
    pub fn handle(&self, cpu: CpuId, run: impl FnMut(&Firing<World>) -> CallbackResult) -> Expired {
        self.world().deliver(cpu);
        on(cpu, || self.bases.expire(cpu, run))
    }

    /// The same, for callbacks that do nothing. Returns who fired.
    pub fn fire(&self, cpu: CpuId) -> Vec<usize> {
        let mut fired = Vec::new();
        self.handle(cpu, |firing| {
            fired.push(firing.task);
            CallbackResult::Done
        });
        fired
    }
}
