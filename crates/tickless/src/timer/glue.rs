//! What the core keeps for each timer and returns when it fires: how to treat its node.

use super::arena::Arena;
use super::fired::Fired;
use crate::platform::host;
use core::alloc::Layout;
use core::ptr::NonNull;

/// The core's platform, for timers that carry their glue.
pub(crate) type Host = host::Host<Task>;

/// The bases of a set of timers.
pub(crate) type Bases = tickless_core::bases::Bases<Host>;

/// What the core returns when a timer fires: how to treat its node.
pub type Task = &'static Glue;

/// The functions and constants of one type of node.
#[derive(Debug)]
pub struct Glue {
    pub(super) call: unsafe fn(NonNull<()>, &mut Fired<'_>),
    pub(super) is_running: unsafe fn(&Bases, NonNull<()>) -> bool,
    pub(super) free: unsafe fn(NonNull<()>, &Arena),
    pub(super) layout: Layout,
    /// The label of timers that have none of their own.
    pub(super) label: fn() -> &'static str,
}

impl Glue {
    /// For a timer inside something else, which ends the timer itself.
    pub(super) const fn embedded(call: unsafe fn(NonNull<()>, &mut Fired<'_>)) -> Glue {
        // Neither is called: such a timer does not become an orphan.
        const fn is_running(_: &Bases, _: NonNull<()>) -> bool {
            false
        }
        const fn free(_: NonNull<()>, _: &Arena) {}
        const fn label() -> &'static str {
            "an embedded timer"
        }
        Glue { call, is_running, free, layout: Layout::new::<()>(), label }
    }

    /// This glue with a label.
    pub(super) const fn labelled(self, label: fn() -> &'static str) -> Glue {
        Glue { label, ..self }
    }

    /// Returns the label: the type of the callback, unless it was given another one.
    pub(crate) fn label(&self) -> &'static str {
        (self.label)().trim_end_matches("::{{closure}}")
    }

    /// Returns whether a base runs this node's callback.
    ///
    /// # Safety
    /// `node` is live and has this glue, and its timer belongs to these bases.
    pub(super) unsafe fn is_running(&self, bases: &Bases, node: NonNull<()>) -> bool {
        // SAFETY: as promised.
        unsafe { (self.is_running)(bases, node) }
    }

    /// Drops a node's closure and frees its memory, even if the drop panics.
    ///
    /// # Safety
    /// `node` is live, has this glue, came from this arena, and is no longer used.
    pub(super) unsafe fn free(&self, node: NonNull<()>, arena: &Arena) {
        // SAFETY: as promised.
        unsafe { (self.free)(node, arena) }
    }
}
