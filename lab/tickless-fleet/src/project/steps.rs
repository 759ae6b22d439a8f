//! Computes the operations that one simulated CPU performs, one by one in order of time.
//!
//! A second of a busy program on hundreds of CPUs has tens of millions of steps. They are not
//! stored: each simulated CPU merges a few lists of [operations](super::operations), each of which
//! is in order of time.

use super::layout::Layout;
use super::operations::Operation;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};
use tickless_trace::replay::streams::What;

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Ns,
    pub(super) home: CpuId,
    pub(super) slot: u32,
    pub(super) what: What,
    pub(super) expiry: u32,
}

/// The steps of one simulated CPU, in order of time. Steps at one time are ordered by the CPU that
/// owns the timer, then as they were recorded.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    layout: &'a Layout,
    sequences: Vec<Sequence<'a>>,
    next: BinaryHeap<Reverse<(Ns, CpuId, u32, usize)>>,
}

#[derive(Debug)]
pub(super) struct Sequence<'a> {
    pub(super) home: CpuId,
    pub(super) recorded: Range<Ns>,
    /// All operations recorded in the interval `recorded`, and possibly others, which are skipped.
    pub(super) operations: &'a [Operation],
}

impl<'a> Steps<'a> {
    pub(super) fn new(layout: &'a Layout, sequences: Vec<Sequence<'a>>) -> Steps<'a> {
        let mut steps = Steps { layout, sequences, next: BinaryHeap::new() };
        for place in 0..steps.sequences.len() {
            let next = steps.head(place);
            steps.next.extend(next.map(Reverse));
        }
        steps
    }

    /// Skips operations of a sequence that were recorded outside of its interval `recorded`.
    /// Returns the sort key of the next operation: its time, home, index and sequence.
    fn head(&mut self, place: usize) -> Option<(Ns, CpuId, u32, usize)> {
        let Sequence { home, recorded, operations } = &mut self.sequences[place];
        let skipped = operations.iter().position(|it| recorded.contains(&it.recorded))?;
        *operations = &operations[skipped..];
        let first = operations.first()?;
        Some((self.layout.moved(*home, first.at), *home, first.place, place))
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let &Reverse((at, home, _, place)) = self.next.peek()?;
        let (Operation { slot, what, expiry, .. }, rest) =
            self.sequences[place].operations.split_first()?;
        self.sequences[place].operations = rest;
        let next = self.head(place);
        // Replacing the top of the heap is cheaper than a pop and a push.
        if let Some(mut first) = self.next.peek_mut() {
            match next {
                Some(next) => *first = Reverse(next),
                None => _ = PeekMut::pop(first),
            }
        }
        Some(Step { at, home, slot: *slot, what: *what, expiry: *expiry })
    }
}
