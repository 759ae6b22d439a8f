//! Fibers: several stacks on one thread, each of which runs until it suspends itself.
//!
//! A fiber calls the library's code, which calls back into the machine through words and locks;
//! the machine suspends the whole stack there. All unsafe code of the crate is here: a fiber
//! suspends itself far below its first function, so the only access to its yielder is a pointer in
//! a thread-local.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::io;
use std::ptr;

/// Enough for an interrupted program, a callback and an interrupt handler on one stack.
const STACK_BYTES: usize = 128 * 1024;

thread_local! {
    /// The yielder of the fiber that runs on this thread; null outside any fiber.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// The number of different offsets at which stacks begin. Stacks are whole pages: if all began at
/// the same offset, the few lines that each uses would share a few sets of the real cache, and 480
/// fibers would evict each other at every switch.
const COLOURS: u32 = 16;

thread_local! {
    static COLOUR: Cell<u32> = const { Cell::new(0) };
}

/// Calls `body` this many steps further down the stack.
#[inline(never)]
fn coloured(steps: u32, body: impl FnOnce()) {
    if steps == 0 {
        return body();
    }
    let padding = [0_u8; 192];
    coloured(steps - 1, body);
    std::hint::black_box(&padding);
}

/// A stack, and a suspended function on it.
pub(crate) struct Fiber(Coroutine<(), (), ()>);

/// Why a fiber has returned control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resumed {
    /// It suspended itself.
    Suspended,
    /// Its function has returned.
    Ended,
}

impl Fiber {
    /// A fiber that runs `body`. Fails when there is no memory for its stack.
    pub(crate) fn new(body: impl FnOnce() + 'static) -> io::Result<Fiber> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        let colour = COLOUR.get();
        COLOUR.set((colour + 1) % COLOURS);
        Ok(Fiber(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            YIELDER.set(yielder);
            coloured(colour, body);
        })))
    }

    /// Runs the fiber until it suspends itself or ends. Propagates its panics.
    pub(crate) fn resume(&mut self) -> Resumed {
        match self.0.resume(()) {
            CoroutineResult::Yield(()) => Resumed::Suspended,
            CoroutineResult::Return(()) => Resumed::Ended,
        }
    }
}

/// Suspends the calling fiber until it is resumed. A suspended fiber that is dropped unwinds from
/// here. Does nothing outside any fiber, and while one is dropped.
pub(crate) fn suspend() {
    let yielder = YIELDER.replace(ptr::null());
    if yielder.is_null() {
        return;
    }
    // SAFETY: a fiber stores its yielder when it is first entered, and below each time it is
    // resumed, and removes it above before it is left, so the pointer belongs to the fiber that
    // runs now. The yielder is at the bottom of that stack, which is in use. A fiber that ended or
    // panicked leaves its pointer, but then `clear_yielder` runs before anything else.
    unsafe { (*yielder).suspend(()) };
    YIELDER.set(yielder);
}

/// Removes the yielder of a fiber that has ended or panicked. Called after each resumption.
pub(crate) fn clear_yielder() {
    YIELDER.set(ptr::null());
}

/// The number of a fiber in its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct FiberId(pub(crate) u32);
