//! Interrupts that are under way to one CPU.

use crate::ps::Ps;

/// What an interrupt is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Vector {
    /// This CPU's event device.
    Timer,
    /// Another CPU wants this one to look at its base.
    Look,
    /// Another CPU wants this one to choose a task anew.
    Reschedule,
    /// Somebody wants this one to switch itself off for a while.
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

/// What is under way to one CPU.
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
    /// When the next one comes.
    #[inline]
    pub(crate) fn next(&self) -> Ps {
        self.next
    }

    /// When the event device comes.
    pub(crate) fn timer(&self) -> Ps {
        self.timer
    }

    pub(crate) fn program(&mut self, at: Ps) {
        self.timer = at;
        self.renew();
    }

    /// Forgets what was programmed, and loses what was sent.
    pub(crate) fn clear(&mut self) {
        *self = Inbox::default();
    }

    pub(crate) fn send(&mut self, at: Ps, vector: Vector) {
        let place = self.sent.partition_point(|sent| sent.0 > at);
        self.sent.insert(place, (at, vector));
        self.renew();
    }

    /// Takes the first one out.
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
