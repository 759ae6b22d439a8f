//! A future whose timers have a label.

use crate::timer::notes;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    pub(super) struct Labelled<F> {
        label: &'static str,
        #[pin]
        future: F,
    }
}

impl<F> Labelled<F> {
    pub(super) fn new(label: &'static str, future: F) -> Labelled<F> {
        Labelled { label, future }
    }
}

impl<F: Future> Future for Labelled<F> {
    type Output = F::Output;

    #[cfg_attr(debug_assertions, track_caller)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        notes::labelling(this.label, || this.future.poll(cx))
    }
}
