//! Tables one after the other, printed.

use super::args::{TopError, View};
use super::show;
use crate::output::Format;
use crate::record::command::{End, Waiting};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tickless_top::source::Counting;
use tickless_top::table::between;

/// So often the source is asked for what it has.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// As shells number Ctrl-C.
const INTERRUPTED: u8 = 130;

/// What to print.
pub(super) struct Batch {
    pub(super) tables: NonZeroU64,
    pub(super) rows: usize,
    pub(super) format: Format,
}

impl Batch {
    /// Prints the tables. A signal ends it, with what was counted until then.
    pub(super) fn run(
        &self,
        waiting: &Waiting,
        mut counting: Counting,
        interval: Duration,
        view: &View,
    ) -> Result<ExitCode, TopError> {
        let mut before = counting.snapshot()?;
        for number in 0..self.tables.get() {
            let end = pass(waiting, &mut counting, interval)?;
            let after = counting.snapshot()?;
            let mut table = between(&before, &after, view.by, counting.name());
            table.is_partial = end == End::Signal;
            view.apply(&mut table);
            let mut out = io::BufWriter::new(io::stdout().lock());
            show::show(&table, view.by, self.rows, self.format, number, &mut out)?;
            out.flush()?;
            if end == End::Signal {
                return Ok(ExitCode::from(INTERRUPTED));
            }
            before = after;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Lets an interval pass.
fn pass(waiting: &Waiting, counting: &mut Counting, interval: Duration) -> Result<End, TopError> {
    let end = Instant::now() + interval;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(End::Time);
        }
        if waiting.pass(left.min(POLL)) == End::Signal {
            return Ok(End::Signal);
        }
        counting.poll()?;
    }
}
