//! Implements `Stream` for intervals, with the feature `stream`.

use super::{Interval, Tick};
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};

/// An endless stream of the ticks that [`Interval::tick`] returns.
impl Stream for Interval {
    type Item = Tick;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Tick>> {
        self.poll_tick(cx).map(Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VirtualTime;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;

    #[test]
    fn a_stream_has_the_ticks_of_its_interval() {
        let time = VirtualTime::new();
        let (begin, period) = (time.now(), Duration::from_secs(60));
        let mut stream = pin!(time.timers().interval(period));
        time.block_on(async {
            for nth in 1..=3 {
                let tick = poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
                assert_eq!(tick.map(|tick| tick.due), Some(begin + period * nth));
            }
        });
    }
}
