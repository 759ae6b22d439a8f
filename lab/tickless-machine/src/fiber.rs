//! Fibers: several stacks on one thread, each of which runs until it suspends itself.
//!
//! A fiber calls the library's code, which calls back into the machine through simulated words and
//! locks; the machine suspends the whole stack there. To suspend itself, a fiber needs its yielder,
//! which only its first function receives, many calls above. So a thread-local holds a pointer to
//! the yielder, and using that pointer is unsafe.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::io;
use std::ptr;

/// The size of a fiber's stack: enough for a program, a timer callback and an interrupt handler.
const STACK_BYTES: usize = 128 * 1024;

thread_local! {
    /// The yielder (the handle by which a fiber suspends itself) of the fiber that runs on this
    /// thread; null outside any fiber.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// The number of different offsets at which stacks begin. Stacks consist of whole pages: if all
/// began at the same offset in a page, the few cache lines that each fiber uses would fall into a
/// few sets of the real CPU's cache, and 480 fibers would evict each other's lines at every switch.
const COLOURS: u32 = 16;

thread_local! {
    static COLOUR: Cell<u32> = const { Cell::new(0) };
}

/// Calls `body` below `steps` stack frames of padding, so that the stacks of different fibers begin
/// at different offsets in their pages ([`COLOURS`]).
#[inline(never)]
fn coloured(steps: u32, body: impl FnOnce()) {
    if steps == 0 {
        return body();
    }
    let padding = [0_u8; 192];
    coloured(steps - 1, body);
    std::hint::black_box(&padding);
}

pub(crate) struct Fiber(Coroutine<(), (), ()>);

/// How the resumption of a fiber has ended: the fiber has suspended itself, or its function has
/// returned.
pub(crate) type Resumed = CoroutineResult<(), ()>;

impl Fiber {
    /// Makes a fiber. Stacks begin at different offsets, so that they do not share cache sets.
    pub(crate) fn new(body: impl FnOnce() + 'static) -> io::Result<Fiber> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        let colour = COLOUR.get();
        COLOUR.set((colour + 1) % COLOURS);
        Ok(Fiber(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            YIELDER.set(yielder);
            coloured(colour, body);
        })))
    }

    /// Runs the fiber until it suspends itself or its function returns. Propagates its panics.
    pub(crate) fn resume(&mut self) -> Resumed {
        self.0.resume(())
    }
}

/// Suspends the calling fiber until it is resumed. If the suspended fiber is dropped, its stack is
/// unwound from here. Does nothing outside any fiber, and in a fiber whose stack is being unwound.
pub(crate) fn suspend() {
    let yielder = YIELDER.replace(ptr::null());
    if yielder.is_null() {
        return;
    }
    // SAFETY: a pointer that is not null here leads to the yielder of the fiber that runs now: a
    // fiber stores the pointer when it is first entered and whenever it is resumed (the last line
    // of this function), and removes it before it suspends itself (the `replace` above). The
    // yielder is at the bottom of the running fiber's stack, so it still exists. A fiber that ended
    // or panicked leaves its pointer in the thread-local, but its resumer calls `clear_yielder`
    // before another fiber or the machine's own code can call this function.
    unsafe { (*yielder).suspend(()) };
    YIELDER.set(yielder);
}

/// Clears the pointer to the yielder, which a fiber that has ended or panicked leaves behind.
/// Called whenever a fiber has returned control.
pub(crate) fn clear_yielder() {
    YIELDER.set(ptr::null());
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct FiberId(pub(crate) u32);

impl Default for FiberId {
    /// The number of no fiber.
    fn default() -> FiberId {
        FiberId(u32::MAX)
    }
}
