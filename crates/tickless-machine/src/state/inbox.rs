//! The interrupts in flight to one simulated CPU, and the time for which its timer device is
//! programmed.

use crate::ps::Ps;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Vector {
    Timer,
    /// Another CPU requests that this CPU check its base, which holds its armed timers.
    Look,
    /// Another CPU requests that this CPU choose again which task it runs.
    Reschedule,
    Stop,
}

impl Vector {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Vector::Timer => "timer interrupt",
            Vector::Look => "look interrupt",
            Vector::Reschedule => "reschedule interrupt",
            Vector::Stop => "stop interrupt",
        }
    }
}

/// The interrupts in flight to one CPU, and the time for which its timer device is programmed.
#[derive(Debug)]
pub(crate) struct Inbox {
    timer: Ps,
    /// Latest first.
    sent: Vec<(Ps, Vector)>,
    next: Ps,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { timer: Ps::NEVER, sent: Vec::new(), next: Ps::NEVER }
    }
}

impl Inbox {
    #[inline]
    pub(crate) fn next(&self) -> Ps {
        self.next
    }

    pub(crate) fn timer(&self) -> Ps {
        self.timer
    }

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
