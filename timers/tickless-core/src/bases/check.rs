//! A slow, full check of a base: every invariant on which the fast code relies.
//!
//! Tests call it after each step. It is available in release builds.

use super::base::Bases;
use crate::invariant::BrokenInvariant;
use crate::link::{QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::state::{FiresIn, Lane, Life};
use crate::time::{CpuId, Ns};

impl<P: Platform> Bases<P> {
    /// Checks all timers of a base, and the base's own records. Returns the first fault that it
    /// finds, and `Ok` for a base that does not exist.
    ///
    /// Holds the base's lock for O(n). Does not allocate.
    pub fn check(&self, cpu: CpuId) -> Result<(), BrokenInvariant> {
        let Some(base) = self.used_base(cpu) else { return Ok(()) };
        let state = base.state.lock();
        let (queues, device) = (&state.queues, &state.device);
        queues.wheel.check()?;
        queues.precise.check()?;
        queues.deferred.check()?;
        let mut fault = None;
        let mut expect = |word: &P::Word, lane, fires_in| {
            let life = Life::from_word(word.load(Ordering::Relaxed));
            let is_here = life.is_pending() && life.base() == Some(cpu);
            if !is_here || life.lane() != lane || life.fires_in() != fires_in {
                fault =
                    Some(BrokenInvariant("timer base: a pending timer is not in its state (D2)"));
            }
        };
        let mut needed = queues.earliest_in_handler().min(queues.earliest_in_thread());
        for node in queues.wheel.timers() {
            let timer = TimerRef::<P, WheelLink<P::Word>>::of_wheel(node);
            expect(timer.word(), Lane::Queued, FiresIn::Thread);
            // `max`: a timer beyond the wheel's reach is put into another bucket when its bucket
            // comes due, before its deadline. The device is allowed to fire after that, but not
            // after the deadline.
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
        let next = Ns(base.thread_next.load(Ordering::Relaxed));
        if !state.deferred.is_early(next, queues) {
            fault = Some(BrokenInvariant("timer base: ticks wait too long (D4)"));
        }
        if device.promises() && armed > earliest && armed > needed {
            fault = Some(BrokenInvariant("timer base: the device is late (R1)"));
        }
        fault.map_or(Ok(()), Err)
    }
}
