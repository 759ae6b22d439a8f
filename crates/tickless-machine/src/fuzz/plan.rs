//! What goes wrong in a history: late, lost and slow interrupts, CPUs that are taken away, a clock
//! that stands still or jumps. All of it ends with the safety phase.

use super::{FaultCounts, SAFE_UNTIL};
use crate::fault::Faults;
use crate::irq::Vector;
use crate::random::Random;
use std::cell::RefCell;
use std::rc::Rc;
use tickless_core::time::{CpuId, Ns};

/// The faults of one history.
pub(super) struct Storm {
    random: Random,
    /// How late interrupts are at most, mostly not at all.
    late_max: u64,
    /// One in so many events of a device never comes; zero for none.
    loses_one_in: u64,
    /// One in so many stretches of computing is interrupted by a theft; zero for none.
    steals_one_in: u64,
    glitches: Vec<Glitch>,
    counts: Rc<RefCell<FaultCounts>>,
}

/// A while in which the clock shows the wrong time, the same all the while.
#[derive(Clone, Copy)]
struct Glitch {
    from: Ns,
    to: Ns,
    shows: Ns,
}

/// An interrupt between CPUs that takes this long is slow.
const SLOW: u64 = 2_000_000;
/// The longest theft.
const STOLEN_MAX: u64 = 4_000_000;
/// The longest glitch.
const GLITCH_MAX: u64 = 2_000_000;

impl Storm {
    pub(super) fn draw(random: &mut Random, counts: &Rc<RefCell<FaultCounts>>) -> Storm {
        let mut pick = |end| random.below(end) as usize;
        let late_max = [0, 5_000, 50_000][pick(3)];
        let loses_one_in = [0, 0, 40, 400][pick(4)];
        let steals_one_in = [0, 50, 500][pick(3)];
        let glitches = pick(3) as u64;
        let between = SAFE_UNTIL.0 / 3;
        let glitches = (0..glitches)
            .map(|number| {
                let from = Ns(number * between + random.below(between - GLITCH_MAX));
                let to = from.after(Ns(random.below(GLITCH_MAX)));
                // It stands still and jumps after the time, or jumps ahead and waits for it.
                let shows = if random.below(2) == 0 { from } else { to };
                Glitch { from, to, shows }
            })
            .collect();
        let own = Random::new(random.draw());
        let counts = Rc::clone(counts);
        Storm { random: own, late_max, loses_one_in, steals_one_in, glitches, counts }
    }

    /// Once in so many times; never if that is zero.
    fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.random.below(times) == 0
    }

    /// Mostly nothing.
    fn lateness(&mut self, most: u64) -> Ns {
        let late = if self.random.below(4) > 0 { 0 } else { self.random.below(most + 1) };
        self.counts.borrow_mut().late += u64::from(late > 0);
        Ns(late)
    }
}

impl Faults for Storm {
    fn interrupt(&mut self, _: CpuId, vector: Vector, now: Ns) -> Option<Ns> {
        if now >= SAFE_UNTIL {
            return Some(Ns::ZERO);
        }
        // A CPU that is to choose a task and is not told is the kernel's affair.
        if vector == Vector::Look && self.once_in(self.loses_one_in) {
            self.counts.borrow_mut().lost += 1;
            return None;
        }
        if self.once_in(64) {
            self.counts.borrow_mut().late += 1;
            return Some(Ns(SLOW));
        }
        Some(self.lateness(self.late_max))
    }

    fn device(&mut self, _: CpuId, at: Ns) -> Option<Ns> {
        if at > SAFE_UNTIL {
            return Some(Ns::ZERO);
        }
        if self.once_in(self.loses_one_in) {
            self.counts.borrow_mut().lost += 1;
            return None;
        }
        Some(self.lateness(10 * self.late_max))
    }

    fn steal(&mut self, _: CpuId, now: Ns) -> Ns {
        if now >= SAFE_UNTIL || !self.once_in(self.steals_one_in) {
            return Ns::ZERO;
        }
        self.counts.borrow_mut().thefts += 1;
        Ns(self.random.below(STOLEN_MAX))
    }

    fn clock(&mut self, at: Ns) -> Ns {
        let glitch = self.glitches.iter().find(|glitch| (glitch.from..glitch.to).contains(&at));
        let Some(glitch) = glitch else { return at };
        self.counts.borrow_mut().wrong_times += 1;
        glitch.shows
    }
}
