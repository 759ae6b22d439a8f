//! Intervals as streams, with the feature `stream`.

use super::{Interval, Tick};
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Ticks without end: the same as [`Interval::tick`].
impl Stream for Interval {
    type Item = Tick;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Tick>> {
        self.poll_tick(cx).map(Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}
