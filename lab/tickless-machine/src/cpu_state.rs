//! The state of one simulated CPU: its clock, what it is doing, the interrupts in flight to it.

use crate::coherence::{Access, LineId};
use crate::cost::LineCosts;
use crate::counter_clock::CounterClock;
use crate::fiber::FiberId;
use crate::ps::Ps;

pub const WATCHED_MAX: usize = 4;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) enum Mode {
    Running,
    Working(Segment),
    Waiting(Ps),
    Halted {
        since: Ps,
        exit: Ps,
    },
    Spinning,
    #[default]
    Off,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Segment {
    pub since: Ps,
    /// The work that is left when the segment (a stretch of computation at constant speed) begins,
    /// as its duration at full speed.
    pub work: Ps,
    /// The speed, relative to a thread that is alone on its core.
    pub rate: f64,
    pub limit: Ps,
    pub end: Ps,
}

#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub clock: Ps,
    pub fiber: FiberId,
    pub mode: Mode,
    pub inbox: Inbox,
    pub counter_clock: CounterClock,
    pub locks: u32,
    /// How often this CPU's interrupts were disabled and not yet enabled again. Zero means enabled.
    pub masked: u32,
    pub handlers: u32,
    pub wait: u32,
    /// The time at which another CPU's write took away this CPU's copy of a line, while this CPU
    /// waited for the line to change. Its next read requests the line from that time on.
    pub lost_copy: Option<Ps>,
    /// The time at which the latest line arrived for which the CPU had to wait. `None` if the next
    /// access depends on the content of that line.
    pub miss: Option<Ps>,
    /// The earliest time of the CPU's next request for a line that it does not have.
    next_request: Ps,
    /// The time at which the CPU's latest store becomes visible to other CPUs.
    pub drained: Ps,
    pub waited: Waited,
    /// How often an access of this CPU moved a line, or took another core's copy of it away.
    pub lines_moved: u64,
    watched: Watched,
    pub watts: f64,
    pub joules: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watched {
    lines: [(LineId, u32); WATCHED_MAX],
    /// The number of cache lines that the CPU's waiting loop has read; `WATCHED_MAX + 1` stands for
    /// any number above [`WATCHED_MAX`].
    count: usize,
}

impl Watched {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(LineId, u32)> {
        let count = if self.count > WATCHED_MAX { 0 } else { self.count };
        self.lines[..count].iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waited {
    pub locks: Ps,
    /// The time that the CPU has waited for other CPUs: in a cancel until the timer's callback has
    /// returned, or in a read of a shared clock until another CPU has its value.
    pub others: Ps,
}

impl Cpu {
    /// Returns when this CPU next does something. The machine chooses the next CPU by this time.
    #[inline]
    pub(crate) fn key(&self) -> Ps {
        let interrupt = if self.masked == 0 { self.inbox.next } else { Ps::NEVER };
        match self.mode {
            Mode::Running => self.clock,
            Mode::Working(segment) => self.clock.max(segment.end.min(interrupt)),
            Mode::Waiting(until) => self.clock.max(until.min(interrupt)),
            // An interrupt ends a halt even while interrupts are disabled, so that none is missed
            // between the last check for work and the halt. On x86, `STI; HLT` achieves this.
            Mode::Halted { .. } => self.clock.max(self.inbox.next),
            Mode::Spinning => self.clock.max(interrupt),
            Mode::Off => Ps::NEVER,
        }
    }

    #[inline]
    pub(crate) fn is_interrupted(&self) -> bool {
        self.masked == 0 && self.inbox.next <= self.clock
    }

    /// Returns the time at which the CPU requests a line that it does not have. That is now, with
    /// two exceptions. A load that does not depend on the previous line was requested while the CPU
    /// still waited for that line. A store waits for the requests of earlier stores.
    pub(crate) fn request(&mut self, access: Access, costs: &LineCosts) -> Ps {
        if costs.overlap == Ps::ZERO {
            return self.clock;
        }
        let next = self.next_request;
        let was_ahead = self.miss.is_some_and(|arrived| self.clock - arrived <= costs.window);
        let at = match access {
            Access::Store => next.max(self.clock),
            _ if was_ahead => next.min(self.clock),
            _ => self.clock,
        };
        self.next_request = next.max(at + costs.overlap);
        at
    }

    /// Records that the running program has read a cache line in this version. If the program is in
    /// a waiting loop, a write to the line must wake it. The version is that of the round's first
    /// read of the line, because a write between two reads has perhaps changed the word that was
    /// read first.
    #[inline]
    pub(crate) fn watch(&mut self, line: LineId, version: u32) {
        let Watched { lines, count } = &mut self.watched;
        if lines.iter().take(*count).any(|seen| seen.0 == line) {
            return;
        }
        if let Some(place) = lines.get_mut(*count) {
            *place = (line, version);
        }
        *count = (*count + 1).min(WATCHED_MAX + 1);
    }

    /// Notes that the running program has itself written a line, which then has the given version:
    /// a waiting loop does not wait for its own CPU's writes.
    #[inline]
    pub(crate) fn wrote(&mut self, line: LineId, version: u32) {
        let Watched { lines, count } = &mut self.watched;
        let before = (line, version.wrapping_sub(1));
        if let Some(seen) = lines.iter_mut().take(*count).find(|seen| **seen == before) {
            seen.1 = version;
        }
    }

    pub(crate) fn take_watched(&mut self) -> Watched {
        std::mem::take(&mut self.watched)
    }

    /// Ends a waiting loop, because another CPU has written the line that the loop reads.
    pub(crate) fn wake_from_spinning(&mut self, lost_copy: Ps, at: Ps) {
        self.lost_copy = Some(lost_copy);
        self.clock = self.clock.max(at);
        self.mode = Mode::Running;
    }

    /// Makes another fiber the current one. Returns the interrupt state of the previous fiber,
    /// which the caller passes to [`take_over`](Self::take_over) when that fiber runs again.
    pub(crate) fn hand_over(&mut self, fiber: FiberId) -> (u32, u32) {
        self.fiber = fiber;
        (std::mem::take(&mut self.masked), std::mem::take(&mut self.handlers))
    }

    pub(crate) fn take_over(&mut self, (masked, handlers): (u32, u32)) {
        self.masked = masked;
        self.handlers = handlers;
    }
}

impl Segment {
    pub(crate) fn new(since: Ps, work: Ps, rate: f64, limit: Ps) -> Segment {
        let end = (since + work.scaled(1.0 / rate)).min(limit.max(since));
        Segment { since, work, rate, limit, end }
    }

    pub(crate) fn left(&self, now: Ps) -> Ps {
        let is_complete = now >= self.end && self.end < self.limit;
        if is_complete { Ps::ZERO } else { self.work - (now - self.since).scaled(self.rate) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Vector {
    Timer,
    /// A request of another CPU: check your own base, which holds your armed timers.
    Look,
    /// A request of another CPU: choose again which task you run.
    Reschedule,
    /// A request of another CPU: start the timer of your running task's slice.
    Slice,
    Stop,
}

#[derive(Debug)]
pub(crate) struct Inbox {
    pub timer: Ps,
    /// Latest first.
    sent: Vec<(Ps, Vector)>,
    /// When the next interrupt arrives.
    pub next: Ps,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { timer: Ps::NEVER, sent: Vec::new(), next: Ps::NEVER }
    }
}

impl Inbox {
    pub(crate) fn program(&mut self, at: Ps) {
        self.timer = at;
        self.renew();
    }

    pub(crate) fn clear(&mut self) {
        *self = Inbox::default();
    }

    pub(crate) fn send(&mut self, at: Ps, vector: Vector) {
        let place = self.sent.partition_point(|sent| sent.0 > at);
        self.sent.insert(place, (at, vector));
        self.renew();
    }

    /// Takes the first interrupt: one that was sent, or that of the timer.
    pub(crate) fn take(&mut self) -> Option<(Ps, Vector)> {
        let taken = match self.sent.last() {
            Some(&(at, _)) if at < self.timer => self.sent.pop(),
            _ if self.timer == Ps::NEVER => None,
            _ => Some((std::mem::replace(&mut self.timer, Ps::NEVER), Vector::Timer)),
        };
        self.renew();
        taken
    }

    fn renew(&mut self) {
        self.next = self.sent.last().map_or(self.timer, |sent| sent.0.min(self.timer));
    }
}
