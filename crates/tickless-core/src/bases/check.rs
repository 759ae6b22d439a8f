//! A slow, full check of a base: every invariant on which the fast code relies.
//!
//! Tests call it after each step. It is available in release builds.

use super::base::Bases;
use crate::link::{QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queues::tree::QueueFault;
use crate::queues::wheel::WheelFault;
use crate::state::{FiresIn, Lane, Life};
use crate::time::{CpuId, Ns};
use core::fmt;

/// A broken invariant of a base. The cause is a bug of this crate, or a violation of the rules of
/// [`TimerRef::new`]: stop using the bases and report it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BaseFault {
    /// A fault in the wheel.
    Wheel(WheelFault),
    /// A fault in a queue of precise timers.
    Queue(QueueFault),
    /// The device is armed for a time after the earliest timer (R1).
    Late {
        /// The time for which the device is armed.
        armed: Ns,
        /// When the earliest timer is due.
        earliest: Ns,
    },
    /// The time at which ticks wake the expiry thread, stored outside the lock, is after its next
    /// timer is due (D4).
    LateTick {
        /// The stored time.
        cached: Ns,
    },
    /// A timer is on a list of the base, but according to its state word it is elsewhere, or not
    /// pending (D2).
    Word {
        /// The state in the word.
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
                write!(f, "timer base: ticks wait until {cached:?}, and a timer is due before")
            }
            BaseFault::Word { life } => {
                write!(f, "timer base: a pending timer has the state {life:?}")
            }
        }
    }
}

impl core::error::Error for BaseFault {}

impl<P: Platform> Bases<P> {
    /// Checks all timers of a base, and the base's own records. Returns the first fault that it
    /// finds, and `Ok` for a base that does not exist.
    ///
    /// Holds the base's lock for O(n). Does not allocate.
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
        let mut needed = queues.earliest_in_handler().min(queues.earliest_in_thread());
        for node in queues.wheel.timers() {
            let timer = TimerRef::<P, WheelLink<P::Word>>::of_wheel(node);
            expect(timer.word(), Lane::Queued, FiresIn::Thread);
            // A timer beyond the wheel's reach is placed again when its bucket comes due. That may
            // be late, as long as it is before the deadline.
            needed = needed.min(queues.wheel.due_at(node).max(timer.node().deadline()));
        }
        for (queue, fires_in) in
            [(&queues.precise, FiresIn::Handler), (&queues.deferred, FiresIn::Thread)]
        {
            for (node, lane) in queue.timers() {
                expect(TimerRef::<P, QueueLink>::around(node).word(), lane, fires_in);
            }
        }
        let (armed, earliest) = (device.armed(), state.earliest());
        let next = Ns(self.base(cpu).thread_next.load(Ordering::Relaxed));
        if !state.deferred.is_early(next, queues) {
            fault = Some(BaseFault::LateTick { cached: next });
        }
        if device.promises() && armed > earliest && armed > needed {
            fault = Some(BaseFault::Late { armed, earliest });
        }
        fault.map_or(Ok(()), Err)
    }
}
