//! The timers' clock of a CPU whose counter can go on while the machine is suspended: the library's
//! own arithmetic, which compares the counter with the time that stands meanwhile.

use tickless_core::clock::discipline::{Discipline, Moment};
use tickless_core::clock::segment::{Segment, SourceId};
use tickless_core::time::Ns;

#[derive(Debug, Default)]
pub(crate) struct CounterClock(Option<(Segment, Discipline)>);

impl CounterClock {
    /// Returns the time when the counter shows `now.counter`. Uses `now.system`, the true time, in
    /// comparisons only.
    pub(crate) fn read(&mut self, now: Moment) -> Ns {
        let (line, discipline) = self.0.get_or_insert_with(|| {
            // The counter counts nanoseconds.
            let began = Moment { counter: now.counter - now.system.0, system: Ns::ZERO, doubt: 0 };
            let discipline = Discipline::new(began, now);
            (discipline.first(SourceId(0)), discipline)
        });
        if let Some(time) = line.at(now.counter) {
            return time.ns;
        }
        *line = discipline.next(now, *line);
        line.start.ns
    }
}
