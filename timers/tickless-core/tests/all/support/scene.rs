//! Scenes of single tests: bases with a clock at one second, and short names for common operations.

use super::timers::{AnyTimer, Family, exactly};
use super::{TestPlatform, on};
use std::sync::Arc;
use tickless_core::bases::expiry::Expired;
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Options, Settings, Started};
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};

pub const HERE: CpuId = CpuId(0);
pub const THERE: CpuId = CpuId(1);

pub const fn ms(ms: u64) -> Ns {
    Ns::from_ms(ms)
}

/// The time at which a scene begins.
pub const START: Ns = Ns::from_secs(1);

pub struct Scene {
    pub bases: Arc<Bases<TestPlatform>>,
}

impl Scene {
    pub fn new(settings: Settings, cpus: u16) -> Scene {
        Scene { bases: Arc::new(Bases::new(TestPlatform::new(cpus, START), cpus, settings)) }
    }

    /// Makes two CPUs with this policy and otherwise default settings.
    pub fn with_policy(policy: Policy) -> Scene {
        Scene::new(Settings { policy, ..Settings::default() }, 2)
    }

    pub fn platform(&self) -> &TestPlatform {
        self.bases.platform()
    }

    pub fn timer(&self, family: Family, task: usize) -> AnyTimer {
        AnyTimer::new(&self.bases, family, task)
    }

    /// Starts a timer on a CPU, to fire this long after the beginning of the scene.
    pub fn start(&self, timer: &AnyTimer, cpu: CpuId, after: Ns) -> Started {
        self.start_with(timer, cpu, after, Options::default())
    }

    pub fn start_with(&self, timer: &AnyTimer, cpu: CpuId, after: Ns, options: Options) -> Started {
        let (at, now) = (START.after(after), self.platform().time());
        on(cpu, || timer.start(exactly(at), now, options)).expect("a timer that is not shut down")
    }

    /// Sets the clock to this long after the beginning of the scene.
    pub fn go(&self, after: Ns) {
        self.platform().set_time(START.after(after));
    }

    /// Returns the time from the beginning of the scene for which a device is armed.
    pub fn armed(&self, cpu: CpuId) -> Option<Ns> {
        let armed = self.platform().armed(cpu);
        (armed != Ns::NEVER).then(|| armed.since(START))
    }

    /// Returns how often an operation writes a CPU's device.
    pub fn writes<R>(&self, cpu: CpuId, operation: impl FnOnce() -> R) -> u64 {
        let before = self.platform().writes(cpu);
        operation();
        self.platform().writes(cpu) - before
    }

    pub fn handle(
        &self,
        cpu: CpuId,
        run: impl FnMut(&Firing<TestPlatform>) -> CallbackResult,
    ) -> Expired {
        self.platform().deliver(cpu);
        on(cpu, || self.bases.expire(cpu, run))
    }

    /// Runs the handler with callbacks that do nothing. Returns the timers that fired.
    pub fn fire(&self, cpu: CpuId) -> Vec<usize> {
        let mut fired = Vec::new();
        self.handle(cpu, |firing| {
            fired.push(firing.task);
            CallbackResult::Done
        });
        fired
    }
}
