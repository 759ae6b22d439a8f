//! Random histories of the timer core on simulated machines of 2 to 64 CPUs.

use tickless_core::time::Ns;
use tickless_machine::fuzz::{FaultCounts, History, MACHINE, Violation, history};
use tickless_machine::machines;

/// Goal: a violation prints the failure and the command that repeats it, on one line.
#[test]
fn violation_prints_its_command() {
    let violation = Violation { seed: 7, at: Ns(5), what: "lost".to_string() };
    assert_eq!(violation.to_string(), "at 5ns: lost; again with: tickless machines --fuzz 7");
}

/// Goal: no history breaks a rule of the checkers, and each is a function of its seed.
/// `TICKLESS_SEEDS` is the number of seeds, 40 by default.
#[test]
fn histories_keep_the_contract() {
    let spec = machines::named(MACHINE).unwrap().unwrap();
    let seeds = std::env::var("TICKLESS_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let mut sum = History::default();
    for seed in 1..=seeds.unwrap_or(40) {
        let one = history(&spec, seed).unwrap_or_else(|violation| panic!("{violation}"));
        if seed % 8 == 0 {
            assert_eq!(history(&spec, seed).ok(), Some(one), "seed {seed} twice");
        }
        sum.cpus = sum.cpus.max(one.cpus);
        sum.armed += one.armed;
        sum.fired += one.fired;
        sum.cancelled += one.cancelled;
        sum.faults = sum.faults.plus(one.faults);
    }
    // Every kind of event must occur often enough to be tested.
    assert!(sum.cpus > 32 && sum.fired > 1_000 && sum.cancelled > 1_000, "{sum}");
    let FaultCounts { offline, deaths, deaths_in_callbacks, lost, late, .. } = sum.faults;
    let FaultCounts { thefts, wrong_times, noticed, .. } = sum.faults;
    let often = [offline, deaths, lost, late, thefts, wrong_times];
    assert!(often.iter().all(|&count| count > 50), "{sum}");
    assert!(deaths_in_callbacks > 5 && noticed > 20, "{sum}");
}
