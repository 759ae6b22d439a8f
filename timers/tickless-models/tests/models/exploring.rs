//! How far a model is explored, and what both checkers provide under the same names.
//!
//! `crate::checker` is `under_loom.rs` or `under_shuttle.rs`. Beside the items that [`primitives`]
//! makes, each has `NAME`, `CheckedWord` and `explore`.

use crate::checker;
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Depth {
    pub preemptions: usize,
    pub schedules: usize,
}

impl Depth {
    /// Returns the bounds for most models: larger if the environment asks for deep models.
    pub fn full() -> Depth {
        match env::var("TICKLESS_MODELS").as_deref() {
            Ok("deep") => Depth { preemptions: 3, schedules: 4_000 },
            _ => Depth { preemptions: 2, schedules: 500 },
        }
    }

    pub fn three_preemptions() -> Depth {
        Depth { preemptions: 3, ..Depth::full() }
    }

    /// Returns the bounds with one preemption less, for models with many steps.
    pub fn shallower(self) -> Depth {
        Depth { preemptions: self.preemptions - 1, ..self }
    }
}

pub fn explore(name: &str, depth: Depth, model: impl Fn() + Send + Sync + 'static) {
    let schedules = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&schedules);
    checker::explore(depth, move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} schedules under {}", schedules.load(Ordering::Relaxed), checker::NAME);
}

/// Defines threads on CPUs, locks and parking from the items that both checkers have.
macro_rules! primitives {
    ($checker:ident) => {
        pub use $checker::thread::yield_now;

        $checker::thread_local! {
            static HERE: std::cell::Cell<u16> = std::cell::Cell::new(0);
        }

        pub fn here() -> CpuId {
            CpuId(HERE.with(std::cell::Cell::get))
        }

        pub fn go_to(cpu: CpuId) {
            HERE.with(|here| here.set(cpu.0));
        }

        pub fn fence() {
            $checker::sync::atomic::fence(Ordering::SeqCst);
        }

        /// Starts a thread on a CPU that shares a value with its starter.
        pub fn share<S: Send + Sync + 'static>(
            cpu: CpuId,
            shared: &std::sync::Arc<S>,
            part: impl FnOnce(&S) + Send + 'static,
        ) -> Thread {
            let shared = std::sync::Arc::clone(shared);
            spawn(cpu, move || part(&shared))
        }

        pub struct Thread($checker::thread::JoinHandle<()>);

        pub fn spawn(cpu: CpuId, thread: impl FnOnce() + Send + 'static) -> Thread {
            Thread($checker::thread::spawn(move || {
                go_to(cpu);
                thread();
            }))
        }

        impl Thread {
            pub fn join(self) {
                self.0.join().expect("a failure ends the model");
            }
        }

        pub struct CheckedLock<T>($checker::sync::Mutex<T>);

        impl<T: Send> Lock<T> for CheckedLock<T> {
            type Guard<'a>
                = $checker::sync::MutexGuard<'a, T>
            where
                T: 'a;

            fn new(value: T) -> Self {
                CheckedLock($checker::sync::Mutex::new(value))
            }

            fn lock(&self) -> Self::Guard<'_> {
                self.0.lock().expect("a failure ends the model")
            }
        }

        /// A place where threads sleep until they are woken, as with futex(2).
        pub struct CheckedParking($checker::sync::Mutex<()>, $checker::sync::Condvar);

        impl CheckedParking {
            pub fn new() -> Self {
                CheckedParking($checker::sync::Mutex::new(()), $checker::sync::Condvar::new())
            }

            /// Sleeps if `still` returns true. A concurrent wakeup comes before that, or wakes.
            pub fn park(&self, still: impl FnOnce() -> bool) {
                let guard = self.0.lock().expect("a failure ends the model");
                if still() {
                    drop(self.1.wait(guard).expect("a failure ends the model"));
                }
            }

            pub fn unpark(&self) {
                let guard = self.0.lock().expect("a failure ends the model");
                self.1.notify_all();
                drop(guard);
            }
        }
    };
}
pub(crate) use primitives;
