//! What panics, with which message, and at which place.

use super::time::{self, Instant};
use crate::{message, ms};
use std::cell::RefCell;
use std::sync::Once;
use std::time::Duration;

/// Whether the panic of each of these calls names the caller's file.
pub fn panics_name_the_caller() -> Vec<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let in_runtime = |panics: fn()| is_panic_here(|| runtime.block_on(async { panics() }));
    vec![
        is_panic_here(|| time::pause()),
        in_runtime(|| time::resume()),
        is_panic_here(|| drop(time::interval(Duration::ZERO))),
        in_runtime(|| drop(time::interval_at(Instant::now(), Duration::ZERO))),
        in_runtime(|| drop(time::sleep(ms(5)))),
        in_runtime(|| drop(time::sleep_until(Instant::now() + ms(5)))),
        in_runtime(|| {
            drop(time::timeout_at(Instant::now() + ms(5), std::future::pending::<()>()));
        }),
    ]
}

pub fn pauses_without_a_clock() -> String {
    message(|| time::pause())
}

pub async fn pauses_twice() -> String {
    message(|| time::pause())
}

pub async fn intervals_of_nothing() -> String {
    message(|| drop(time::interval(Duration::ZERO)))
}

/// Returns whether a panic names this file.
fn is_panic_here(panics: impl FnOnce()) -> bool {
    thread_local! {
        static FILE: RefCell<String> = const { RefCell::new(String::new()) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            FILE.set(panic.location().expect("a location").file().to_string());
            before(panic);
        }));
    });
    message(panics);
    FILE.take() == file!()
}
