//! The skew check reports no warp where there is none.

use crate::support::{Watched, explore};
use loom::sync::atomic::AtomicU64;
use loom::thread;
use std::sync::Arc;
use tickless_core::clock::counter::Width;
use tickless_core::clock::skew::{Handover, Skew};
use tickless_core::word::Ordering;

/// Goal: CPUs that read one counter in any order find no warp (C8, time never goes back).
#[test]
fn one_counter_has_no_warps() {
    explore(3, || {
        let handover = Arc::new(Handover::<Watched>::new(Width::FULL, 0));
        let counter = Arc::new(AtomicU64::new(0));
        let time = Arc::clone(&counter);
        let time = thread::spawn(move || {
            (1..=2).for_each(|now| time.store(now, Ordering::Relaxed));
        });
        let cpu = || {
            let (handover, counter) = (Arc::clone(&handover), Arc::clone(&counter));
            thread::spawn(move || handover.take_turn(|| counter.load(Ordering::Relaxed)))
        };
        let cpus = [cpu(), cpu()];
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
        time.join().unwrap();
        assert_eq!(handover.skew(), Skew::default());
    });
}
