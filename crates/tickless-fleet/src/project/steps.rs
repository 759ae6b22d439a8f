//! What one CPU of the machine does, step by step, worked out when it comes to it.
//!
//! A second of a busy program on hundreds of CPUs is tens of millions of steps. None is kept: each
//! CPU goes along the [operations](super::operations) of the trace that it performs, a few
//! sequences in order of time, and always takes the first.

use super::layout::Layout;
use super::operations::Operation;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};
use tickless_trace::replay::streams::What;

/// Something that one CPU does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Ns,
    /// The CPU whose timer it is: the timer's home on the machine.
    pub(super) home: CpuId,
    pub(super) slot: u32,
    pub(super) what: What,
    /// Which of the timer's expiries it is, if it is one.
    pub(super) expiry: u32,
}

/// The steps of one CPU, in order of time; at one time by home, then as they were recorded.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    layout: &'a Layout,
    sequences: Vec<Sequence<'a>>,
    /// For each sequence that is not at its end: when its next step is, and which it is.
    next: BinaryHeap<Reverse<(Ns, CpuId, u32, usize)>>,
}

/// What one CPU does to the timers of one home.
#[derive(Debug)]
pub(super) struct Sequence<'a> {
    pub(super) home: CpuId,
    /// What of the trace is performed.
    pub(super) recorded: Range<Ns>,
    /// All of that, and perhaps more.
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

    /// Goes on to the next operation of a sequence that is performed. Returns its place in the
    /// order.
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
        // One way down the heap instead of two, as there is almost always a next one.
        if let Some(mut first) = self.next.peek_mut() {
            match next {
                Some(next) => *first = Reverse(next),
                None => _ = PeekMut::pop(first),
            }
        }
        Some(Step { at, home, slot: *slot, what: *what, expiry: *expiry })
    }
}
