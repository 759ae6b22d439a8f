//! The option `--batch` of `tickless top`: prints tables one after the other, without a live
//! screen.

use super::{View, show};
use crate::command::{Exit, Failure};
use crate::output::{Format, print_with};
use crate::record::command::{End, Waiting};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use tickless_top::Ebpf;
use tickless_top::table::between;

pub(super) const POLL: Duration = Duration::from_millis(100);

pub(super) struct Batch {
    pub(super) tables: NonZeroU64,
    pub(super) rows: usize,
    pub(super) format: Format,
}

impl Batch {
    pub(super) fn run(
        &self,
        waiting: &Waiting,
        mut counting: Ebpf,
        interval: Duration,
        view: &View,
    ) -> Result<Exit, Failure> {
        let mut before = counting.snapshot()?;
        for number in 0..self.tables.get() {
            let end = pass(waiting, &mut counting, interval)?;
            let after = counting.snapshot()?;
            let mut table = between(&before, &after, view.by);
            table.is_partial = end == End::Signal;
            view.apply(&mut table);
            print_with(|out| show::show(&table, view, self.rows, self.format, number, out))?;
            if end == End::Signal {
                return Ok(Exit::Interrupted);
            }
            before = after;
        }
        Ok(Exit::Success)
    }
}

fn pass(waiting: &Waiting, counting: &mut Ebpf, interval: Duration) -> Result<End, Failure> {
    let end = Instant::now() + interval;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(End::Time);
        }
        if waiting.pass(left.min(POLL)) == End::Signal {
            return Ok(End::Signal);
        }
        counting.poll();
    }
}
