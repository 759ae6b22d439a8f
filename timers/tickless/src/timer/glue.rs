//! The functions for each type of node, which is the memory of a timer and its callback. Each timer
//! points to the functions for its node, and the core returns that pointer when the timer fires.

use super::arena::Arena;
use super::fired::Fired;
use crate::platform::host;
use core::alloc::Layout;
use core::ptr::NonNull;

/// The platform for which this crate uses the core. Each timer carries a [`Task`].
pub(crate) type Host = host::Host<Task>;

pub(crate) type Bases = tickless_core::bases::Bases<Host>;

pub type Task = &'static Glue;

#[derive(Debug)]
pub struct Glue {
    pub(super) call: unsafe fn(NonNull<()>, &mut Fired<'_>),
    /// Returns whether one of these bases is running the callback of the node. The caller promises
    /// that the node is live and has this glue, and that its timer belongs to these bases.
    pub(super) is_running: unsafe fn(&Bases, NonNull<()>) -> bool,
    /// Drops the node's closure and frees its memory, even if the drop panics. The caller promises
    /// that the node is live, has this glue, comes from this arena, and is not used any more.
    pub(super) free: unsafe fn(NonNull<()>, &Arena),
    pub(super) layout: Layout,
    /// Returns the default label, for timers that the program has not labelled.
    pub(super) label: fn() -> &'static str,
}

impl Glue {
    /// Makes the glue for a timer inside another object. The owner of that object ends the timer.
    pub(super) const fn embedded(call: unsafe fn(NonNull<()>, &mut Fired<'_>)) -> Glue {
        // `is_running` and `free` are never called: they are for orphans (timers that were dropped
        // while their callback ran), and an embedded timer does not become one.
        const fn is_running(_: &Bases, _: NonNull<()>) -> bool {
            false
        }
        const fn free(_: NonNull<()>, _: &Arena) {}
        const fn label() -> &'static str {
            "a C timer without a label"
        }
        Glue { call, is_running, free, layout: Layout::new::<()>(), label }
    }

    pub(super) const fn labelled(self, label: fn() -> &'static str) -> Glue {
        Glue { label, ..self }
    }

    /// Returns the default label: for most timers the type of the callback, without the suffix
    /// that Rust gives the types of closures.
    pub(crate) fn label(&self) -> &'static str {
        (self.label)().trim_end_matches("::{{closure}}")
    }
}
