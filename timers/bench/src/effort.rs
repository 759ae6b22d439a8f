//! The extent of a run.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub repetitions: usize,
    /// Samples of each figure of W3, some of which take seconds of real time.
    pub bulk_repetitions: usize,
    pub operations: usize,
    pub pending: &'static [usize],
    /// The number of timers that expire in W3 and are weighed in W6.
    pub bulk: usize,
    /// The number of timers in W5, for how long they run, and how often.
    pub lateness: (usize, Duration, usize),
    pub sleeps: usize,
    /// For how long a server runs in W10 and W12, how often, and its idle timeouts in W10.
    pub servers: (Duration, usize, usize),
}

impl Effort {
    pub fn with_repetitions(self, repetitions: Option<u32>) -> Effort {
        let Some(repetitions) = repetitions.map(|repetitions| repetitions as usize) else {
            return self;
        };
        let ((count, run, _), (serve, _, timeouts)) = (self.lateness, self.servers);
        Effort {
            repetitions,
            bulk_repetitions: repetitions,
            lateness: (count, run, repetitions),
            servers: (serve, repetitions, timeouts),
            ..self
        }
    }

    pub const FULL: Effort = Effort {
        repetitions: 7,
        bulk_repetitions: 5,
        operations: 100_000,
        pending: &[1_000, 100_000, 1_000_000],
        bulk: 1_000_000,
        lateness: (1_000, Duration::from_secs(3), 3),
        sleeps: 300,
        servers: (Duration::from_secs(1), 9, 100_000),
    };

    /// Under a minute. Still the median of seven, of fewer operations each.
    pub const QUICK: Effort = Effort {
        repetitions: 7,
        bulk_repetitions: 5,
        operations: 40_000,
        pending: &[1_000, 100_000],
        bulk: 100_000,
        lateness: (1_000, Duration::from_secs(1), 1),
        sleeps: 100,
        servers: (Duration::from_millis(400), 5, 100_000),
    };

    /// A moment: for tests.
    #[cfg(test)]
    pub const TINY: Effort = Effort {
        repetitions: 2,
        bulk_repetitions: 2,
        operations: 50,
        pending: &[20],
        bulk: 200,
        lateness: (20, Duration::from_millis(100), 1),
        sleeps: 5,
        servers: (Duration::from_millis(40), 2, 200),
    };
}
