//! The slow full check of a base: every rule that the fast code relies on, stated once.
//!
//! For tests after each step, and for the doubtful; allowed in release builds.

use super::base::Bases;
use crate::link::{QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queues::tree::QueueFault;
use crate::queues::wheel::WheelFault;
use crate::state::{FiresIn, Lane, Life};
use crate::time::{CpuId, Ns};
use core::fmt;

/// What is broken in a base. Each is a bug of this crate or a broken promise of a caller of
/// [`TimerRef::new`]: stop using the bases and report it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BaseFault {
    /// In the wheel.
    Wheel(WheelFault),
    /// In the precise queue.
    Queue(QueueFault),
    /// The device is armed for later than the earliest timer (R1).
    Late {
        /// What the device is armed for.
        armed: Ns,
        /// When it should come.
        earliest: Ns,
    },
    /// What ticks read lies after the next timer that the expiry thread fires (D4).
    LateTick {
        /// What they read.
        cached: Ns,
    },
    /// A timer is in one of the base's structures, and its word says that it is not (D2).
    Word {
        /// What the word says.
        life: Life,
    },
}

impl fmt::Display for BaseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseFault::Wheel(fault) => write!(f, "timer wheel: {fault:?}"),
            BaseFault::Queue(fault) => fault.fmt(f),
            BaseFault::Late { armed, earliest } => {
                write!(f, "timer base: the device is armed for {armed:?}, due is {earliest:?}")
            }
            BaseFault::LateTick { cached } => {
                write!(f, "timer base: ticks believe in {cached:?}, and something is due before")
            }
            BaseFault::Word { life } => write!(f, "timer base: a pending timer says {life:?}"),
        }
    }
}

impl core::error::Error for BaseFault {}

impl<P: Platform> Bases<P> {
    /// Walks everything on a base and compares it with what the base believes. The first fault
    /// that is met is returned; nothing is wrong with a base that does not exist.
    ///
    /// Holds the base's lock for O(n). Allocates nothing.
    pub fn check(&self, cpu: CpuId) -> Result<(), BaseFault> {
        if cpu.index() >= self.count() {
            return Ok(());
        }
        let state = self.base(cpu).state.lock();
        let (queues, device) = (&state.queues, &state.device);
        queues.wheel.check().map_err(BaseFault::Wheel)?;
        queues.precise.check().map_err(BaseFault::Queue)?;
        queues.deferred.check().map_err(BaseFault::Queue)?;
        let mut fault = None;
        let mut expect = |word: &P::Word, lane, fires_in| {
            let life = Life::from_word(word.load(Ordering::Relaxed));
            let is_here = life.is_pending() && life.base() == Some(cpu);
            if !is_here || life.lane() != lane || life.fires_in() != fires_in {
                fault = Some(BaseFault::Word { life });
            }
        };
        queues.wheel.for_each(|node| {
            expect(
                TimerRef::<P, WheelLink<P::Word>>::of_wheel(node).word(),
                Lane::Queued,
                FiresIn::Thread,
            );
        });
        queues.precise.for_each(|node, lane| {
            expect(TimerRef::<P, QueueLink>::around(node).word(), lane, FiresIn::Handler);
        });
        queues.deferred.for_each(|node, lane| {
            expect(TimerRef::<P, QueueLink>::around(node).word(), lane, FiresIn::Thread);
        });
        let (armed, earliest) = (device.armed(), state.earliest());
        let next = Ns(self.base(cpu).thread_next.load(Ordering::Relaxed));
        if !state.deferred.is_early(next, queues) {
            fault = Some(BaseFault::LateTick { cached: next });
        }
        if device.promises() && armed > earliest {
            fault = Some(BaseFault::Late { armed, earliest });
        }
        fault.map_or(Ok(()), Err)
    }
}
