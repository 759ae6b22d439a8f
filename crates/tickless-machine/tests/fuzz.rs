//! Random histories of the timer core on simulated machines of 2 to 64 CPUs.

use tickless_machine::fuzz::{History, history};
use tickless_machine::machines;

/// Goal: no history breaks a rule that a checker outside of the core knows; each is a function of
/// its seed. `TICKLESS_SEEDS` says how many, 40 if it is not set; failures print how to see them
/// again.
#[test]
fn histories_keep_the_contract() {
    let spec = machines::named("haswell-ex-4s").unwrap().unwrap();
    let seeds = std::env::var("TICKLESS_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let mut most = History { cpus: 0, armed: 0, fired: 0, cancelled: 0, offline: 0, digest: 0 };
    for seed in 1..=seeds.unwrap_or(40) {
        let one = history(&spec, seed).unwrap_or_else(|violation| panic!("{violation}"));
        if seed % 8 == 0 {
            assert_eq!(history(&spec, seed).ok(), Some(one), "seed {seed} twice");
        }
        most.cpus = most.cpus.max(one.cpus);
        most.armed += one.armed;
        most.fired += one.fired;
        most.cancelled += one.cancelled;
        most.offline += one.offline;
    }
    // What never happens is not tested.
    assert!(most.cpus > 32 && most.offline > 50, "{most:?}");
    assert!(most.fired > 1_000 && most.cancelled > 1_000, "{most:?}");
}
