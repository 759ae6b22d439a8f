//! Timers inside a program's own structs: pinned, and without an allocation.
//!
//! A [`PinnedTimeout`] is a [`Timeout`] whose memory is a field of the struct that it belongs to: a
//! connection's timeout is next to the connection's other fields, so pushing it out touches memory
//! that is already in the cache. [`PinnedHrTimer`] is its precise counterpart. Both are armed,
//! cancelled and queried through the ordinary types, which [`timer`](PinnedTimeout::timer) lends.
//!
//! ```
//! use pin_project_lite::pin_project;
//! use std::pin::{Pin, pin};
//! use std::sync::mpsc::{Receiver, Sender, channel};
//! use std::time::Duration;
//! use tickless::embed::{OnFire, PinnedTimeout};
//! use tickless::{Fired, VirtualTime};
//!
//! /// What an idle connection's timer calls: a type with a name, for the field below.
//! struct CloseIdle(u32, Sender<u32>);
//! impl OnFire for CloseIdle {
//!     fn fired(&mut self, _: &mut Fired<'_>) {
//!         self.1.send(self.0).unwrap_or(());
//!     }
//! }
//!
//! pin_project! {
//!     struct Connection {
//!         received: u64,
//!         #[pin]
//!         idle: PinnedTimeout<CloseIdle>,
//!     }
//! }
//! impl Connection {
//!     fn received(self: Pin<&mut Self>, bytes: u64) {
//!         let this = self.project();
//!         *this.received += bytes;
//!         // Pushed out with every packet.
//!         this.idle.as_ref().timer().start(Duration::from_secs(30)).unwrap();
//!     }
//! }
//!
//! let time = VirtualTime::new();
//! let (tx, rx): (_, Receiver<u32>) = channel();
//! let idle = PinnedTimeout::new(time.timers(), CloseIdle(7, tx));
//! let mut connection = Box::pin(Connection { received: 0, idle });
//! connection.as_mut().received(100);
//! time.advance(Duration::from_secs(20));
//! connection.as_mut().received(100);
//! time.advance(Duration::from_secs(20));
//! assert!(rx.try_recv().is_err());
//! time.advance(Duration::from_secs(10));
//! assert_eq!(rx.try_recv(), Ok(7));
//! ```
//!
//! # Dropping
//!
//! Dropping such a timer cancels it and waits until its callback has returned. Inside the timer's
//! own callback the drop does not wait: the callback outlives its timer, and can drop the last
//! reference to the struct that its timer belongs to. Inside another callback the drop does wait.
//! Such a wait would never end if each of two callbacks drops the other's timer, or if the timer's
//! callback waits for a [`CallbackLock`](crate::callback::CallbackLock) that the caller holds: then
//! the process prints a message and aborts.

use crate::hrtimer::HrTimer;
use crate::platform::host::WheelLink;
use crate::timeout::Timeout;
use crate::timer::inline::Inline;
use crate::timers::Timers;
use pin_project_lite::pin_project;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::pin::Pin;
use tickless_core::link::QueueLink;

pub use crate::timer::inline::OnFire;

#[derive(Debug)]
struct Lent<'a, T> {
    timer: ManuallyDrop<T>,
    of: PhantomData<&'a T>,
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.timer
    }
}

macro_rules! pinned {
    ($(#[$doc:meta])* $name:ident, $timer:ident, $link:ident) => {
        pin_project! {
            $(#[$doc])*
            #[must_use = "dropping a timer cancels it"]
            pub struct $name<F: OnFire> {
                #[pin]
                inner: Inline<$link, F>,
            }
        }

        impl<F: OnFire> $name<F> {
            /// Creates a timer that is not armed. Allocates nothing.
            pub fn new(timers: &Timers, callback: F) -> $name<F> {
                $name { inner: Inline::new(timers.shared.handle(), callback) }
            }

            /// Borrows the timer, to arm, cancel and query it. Costs nothing.
            #[inline]
            pub fn timer(self: Pin<&Self>) -> impl Deref<Target = $timer> {
                let timer = $timer::lent(self.project_ref().inner.owner());
                Lent { timer, of: PhantomData }
            }
        }

        impl<F: OnFire> fmt::Debug for $name<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pinned! {
    /// A coarse timer inside a struct: see [`Timeout`]. 56 bytes plus the callback.
    PinnedTimeout, Timeout, WheelLink
}

pinned! {
    /// A precise timer inside a struct: see [`HrTimer`]. 64 bytes plus the callback.
    PinnedHrTimer, HrTimer, QueueLink
}
