//! What the core carries for each timer and hands back when it fires: how to treat the node.

use super::arena::Arena;
use super::fired::Fired;
use crate::platform::host;
use core::alloc::Layout;
use core::ptr::NonNull;

/// The core's platform, for timers that carry their glue.
pub(crate) type Host = host::Host<Task>;

/// The bases of a set of timers.
pub(crate) type Bases = tickless_core::bases::Bases<Host>;

/// What the core hands back when a timer fires: how to treat the node.
pub type Task = &'static Glue;

/// What depends on the closure's type.
#[derive(Debug)]
pub struct Glue {
    pub(super) call: unsafe fn(NonNull<()>, &mut Fired<'_>),
    pub(super) is_running: unsafe fn(&Bases, NonNull<()>) -> bool,
    pub(super) free: unsafe fn(NonNull<()>, &Arena),
    pub(super) layout: Layout,
    /// Whose such timers are, if nothing else is said.
    pub(super) label: fn() -> &'static str,
}

impl Glue {
    /// For a timer that is part of something else, which sees to its end by itself.
    pub(super) const fn embedded(call: unsafe fn(NonNull<()>, &mut Fired<'_>)) -> Glue {
        // Neither is ever used: such a timer is not left to the orphans.
        const fn is_running(_: &Bases, _: NonNull<()>) -> bool {
            false
        }
        const fn free(_: NonNull<()>, _: &Arena) {}
        const fn label() -> &'static str {
            "an embedded timer"
        }
        Glue { call, is_running, free, layout: Layout::new::<()>(), label }
    }

    /// The same for timers that are somebody's.
    pub(super) const fn labelled(self, label: fn() -> &'static str) -> Glue {
        Glue { label, ..self }
    }

    /// Whose timers with this glue are: the type of the callback, or what it was told.
    pub(crate) fn label(&self) -> &'static str {
        (self.label)().trim_end_matches("::{{closure}}")
    }

    /// Does some base run this node's callback?
    ///
    /// # Safety
    /// A live node with this glue, whose timer belongs to these bases.
    pub(super) unsafe fn is_running(&self, bases: &Bases, node: NonNull<()>) -> bool {
        // SAFETY: as promised.
        unsafe { (self.is_running)(bases, node) }
    }

    /// Drops a node's closure and gives its memory back, even if the closure panics.
    ///
    /// # Safety
    /// A live node with this glue, from this arena, which nobody uses now or later.
    pub(super) unsafe fn free(&self, node: NonNull<()>, arena: &Arena) {
        // SAFETY: as promised.
        unsafe { (self.free)(node, arena) }
    }
}
