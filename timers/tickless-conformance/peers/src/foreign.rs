//! Event loops in C: libev and libuv, called by the functions in `c/`.

use crate::{HOUR, MS, Queue};
use core::ffi::c_void;
use core::ptr::NonNull;
use std::time::Duration;
use tickless_conformance::{Order, Rounding};

/// A loop or timer in C.
type Object = NonNull<c_void>;

/// The functions of one library: `struct library` in `c/loops.h`.
#[repr(C)]
struct Library {
    open: extern "C" fn() -> Object,
    arm: extern "C" fn(Object, u32, u64) -> Object,
    push_out: extern "C" fn(Object, Object, u64),
    cancel: extern "C" fn(Object, Object) -> bool,
    release: extern "C" fn(Object, Object),
    turn: extern "C" fn(Object, extern "C" fn(&mut Vec<u32>, u32), &mut Vec<u32>),
    close: extern "C" fn(Object),
}

// SAFETY: the statics are never written. Their functions are called with a loop that is open until
// it is dropped, and with a timer until the call that consumes its handle.
unsafe extern "C" {
    safe static peers_libev: Library;
    safe static peers_libuv: Library;
}

/// A loop with its timers.
pub struct Loop<const IS_LIBUV: bool>(Object);

pub type Libev = Loop<false>;
pub type Libuv = Loop<true>;

pub struct Timer(Object);

fn library<const IS_LIBUV: bool>() -> &'static Library {
    if IS_LIBUV { &peers_libuv } else { &peers_libev }
}

impl<const IS_LIBUV: bool> Queue for Loop<IS_LIBUV> {
    const NAME: &str = if IS_LIBUV { "libuv 1.44.2, uv_timer_t" } else { "libev 4.33, ev_timer" };
    // The times of libev are seconds in a `double`.
    const GRANULARITY: u64 = if IS_LIBUV { MS } else { 1_000 };
    const ROUNDING: Rounding = if IS_LIBUV { Rounding::Up } else { Rounding::Nearest };
    const ORDER: Order = Order::Deadline;
    const HORIZON: u64 = 365 * 24 * HOUR;
    type Handle = Timer;

    fn new() -> Self {
        Loop((library::<IS_LIBUV>().open)())
    }

    fn arm(&mut self, key: u32, after: Duration) -> Timer {
        Timer((library::<IS_LIBUV>().arm)(self.0, key, after.as_nanos() as u64))
    }

    fn push_out(&mut self, timer: &mut Timer, _: u32, after: Duration) {
        (library::<IS_LIBUV>().push_out)(self.0, timer.0, after.as_nanos() as u64);
    }

    fn cancel(&mut self, timer: Timer) -> bool {
        (library::<IS_LIBUV>().cancel)(self.0, timer.0)
    }

    fn free(&mut self, timer: Timer) {
        (library::<IS_LIBUV>().release)(self.0, timer.0);
    }

    fn advance(&mut self, _: Duration, keys: &mut Vec<u32>) {
        extern "C" fn fired(keys: &mut Vec<u32>, key: u32) {
            keys.push(key);
        }
        (library::<IS_LIBUV>().turn)(self.0, fired, keys);
    }
}

impl<const IS_LIBUV: bool> Drop for Loop<IS_LIBUV> {
    fn drop(&mut self) {
        (library::<IS_LIBUV>().close)(self.0);
    }
}
