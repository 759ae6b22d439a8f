//! Fibers: stacks of their own, on one thread, that hand over only when they say so.
//!
//! The library's code is called from a fiber and calls back into the machine through words and
//! locks; the machine suspends the whole stack there. All unsafe code of the crate is here: a
//! fiber has to find its own way out from far below its first function, and only a pointer that
//! the fiber leaves in a thread-local when it is entered can show it.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::io;
use std::ptr;

/// Enough for an interrupt handler on top of a callback on top of an interrupted program.
const STACK_BYTES: usize = 128 * 1024;

thread_local! {
    /// The way out of the fiber that runs on this thread; null outside of any.
    static WAY_OUT: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// How many different places in a page stacks begin at. Stacks are whole pages; if all of them
/// began at the same place, the few lines that each one uses would fall into the same few sets of
/// the real cache, and 480 fibers would evict each other at every switch.
const COLOURS: u32 = 16;

thread_local! {
    static COLOUR: Cell<u32> = const { Cell::new(0) };
}

/// Calls `body` that many steps further down the stack.
#[inline(never)]
fn coloured(steps: u32, body: impl FnOnce()) {
    if steps == 0 {
        return body();
    }
    let padding = [0_u8; 192];
    coloured(steps - 1, body);
    std::hint::black_box(&padding);
}

/// A stack, and a function that has come some way on it.
pub(crate) struct Fiber(Coroutine<(), (), ()>);

/// What came of resuming a fiber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resumed {
    /// It suspended itself.
    Suspended,
    /// Its function has returned.
    Ended,
}

impl Fiber {
    /// A fiber that will run `body`. Fails when there is no memory for its stack.
    pub(crate) fn new(body: impl FnOnce() + 'static) -> io::Result<Fiber> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        let colour = COLOUR.get();
        COLOUR.set((colour + 1) % COLOURS);
        Ok(Fiber(Coroutine::with_stack(stack, move |way_out: &Yielder<(), ()>, ()| {
            WAY_OUT.set(way_out);
            coloured(colour, body);
        })))
    }

    /// Runs it until it suspends itself or ends. A panic in it comes out here.
    pub(crate) fn resume(&mut self) -> Resumed {
        match self.0.resume(()) {
            CoroutineResult::Yield(()) => Resumed::Suspended,
            CoroutineResult::Return(()) => Resumed::Ended,
        }
    }
}

/// Suspends the fiber that calls it; comes back when it is resumed. A fiber that is dropped
/// instead unwinds from here. Outside of any fiber, and while one is dropped, nothing happens.
pub(crate) fn suspend() {
    let way_out = WAY_OUT.replace(ptr::null());
    if way_out.is_null() {
        return;
    }
    // SAFETY: a fiber stores its yielder when it is entered for the first time and below each
    // time it is resumed, and takes it away above before it is left, so what was found there
    // belongs to the fiber that runs now; the yielder lives at that stack's bottom as long as
    // the stack is in use. A fiber that ended or panicked leaves its pointer behind, but then
    // `forget_way_out` runs before anything else does.
    unsafe { (*way_out).suspend(()) };
    WAY_OUT.set(way_out);
}

/// Forgets the way out of a fiber that has ended or panicked. Called each time a resumption has
/// come back.
pub(crate) fn forget_way_out() {
    WAY_OUT.set(ptr::null());
}

/// A fiber's number in its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct FiberId(pub(crate) u32);
