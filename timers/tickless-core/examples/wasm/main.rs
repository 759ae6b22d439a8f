//! `LocalTimers` in WebAssembly, without an operating system, threads or a clock: the page provides
//! the clock, here that of node. `run.mjs` loads this module and checks its results.
//!
//! ```text
//! cargo build -p tickless-core --example wasm --target wasm32-unknown-unknown --release
//! node timers/tickless-core/examples/wasm/run.mjs \
//!     target/wasm32-unknown-unknown/release/examples/wasm.wasm
//! ```

#![expect(unsafe_code, reason = "exports functions by name")]

use core::time::Duration;
use std::cell::RefCell;
use tickless_core::local::{Clock, Key, LocalTimers};
use tickless_core::time::Instant;

#[cfg(target_arch = "wasm32")]
// SAFETY: `run.mjs` hands in a function of this type.
unsafe extern "C" {
    /// A function of the page, called when the timer with this number fires.
    safe fn fired(number: u32);
}

/// On other targets there is no page.
#[cfg(not(target_arch = "wasm32"))]
fn fired(_: u32) {}

thread_local! {
    static TIMERS: RefCell<LocalTimers<u32>> =
        RefCell::new(LocalTimers::new(Clock::manual(Instant::ZERO)));
    static DUE: RefCell<Vec<Key>> = const { RefCell::new(Vec::new()) };
}

fn ns(ms: f64) -> Instant {
    // Times before the clock's start saturate at its start.
    Instant::from_nanos((ms * 1e6) as u64)
}

/// Adds a timer with this number. Returns its key, or zero if there is no room.
// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub extern "C" fn insert(number: u32) -> u64 {
    TIMERS.with_borrow_mut(|timers| timers.insert_precise(number).map_or(0, Key::to_bits))
}

/// Arms a timer to fire this many ms after the last `advance`. Returns whether the timer exists.
// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub extern "C" fn start(key: u64, after_ms: f64) -> bool {
    let after = Duration::from_nanos(ns(after_ms).as_nanos());
    TIMERS.with_borrow_mut(|timers| timers.start(Key::from_bits(key), after).is_ok())
}

/// Cancels a timer. Returns whether it was pending.
// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub extern "C" fn cancel(key: u64) -> bool {
    TIMERS.with_borrow_mut(|timers| timers.cancel(Key::from_bits(key)).unwrap_or(false))
}

/// Returns when to advance next, in ms of the page's clock; infinity if nothing is pending.
// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub extern "C" fn next_event() -> f64 {
    let next = TIMERS.with_borrow(LocalTimers::next_event);
    next.map_or(f64::INFINITY, |at| at.as_nanos() as f64 / 1e6)
}

/// Sets the current time, and calls the page for each timer that is due. The page may use the
/// timers in that call. Returns how many fired.
// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub extern "C" fn advance(now_ms: f64) -> usize {
    let mut due = DUE.take();
    TIMERS.with_borrow_mut(|timers| timers.advance_into(ns(now_ms), &mut due));
    for key in &due {
        let number = TIMERS.with_borrow_mut(|timers| timers.get(*key).copied());
        if let Some(number) = number {
            fired(number);
        }
    }
    let count = due.len();
    due.clear();
    DUE.set(due);
    count
}
