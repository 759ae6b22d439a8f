//! Random histories of the timer core on simulated machines of 2 to 64 CPUs.

use tickless_core::time::Ns;
use tickless_machine::fuzz::{History, MACHINE, Violation, history};
use tickless_machine::machines;

#[test]
fn violation_prints_its_command() {
    let violation = Violation { seed: 7, at: Ns(5), what: "lost".to_string() };
    let text = violation.to_string();
    assert!(text.starts_with("at 5ns: lost; again with: TICKLESS_SEED=7 cargo test"), "{text}");
}

/// Goal: no history breaks a rule of the checkers, and each is a function of its seed.
/// `TICKLESS_SEEDS` is the number of seeds, 40 by default; `TICKLESS_SEED` runs that one alone.
#[test]
fn histories_keep_the_contract() {
    let spec = machines::named(MACHINE).unwrap().unwrap();
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    if let Some(seed) = number("TICKLESS_SEED") {
        let one = history(&spec, seed).unwrap_or_else(|violation| panic!("{violation}"));
        return println!("{one:?}");
    }
    let mut histories = Vec::new();
    for seed in 1..=number("TICKLESS_SEEDS").unwrap_or(40) {
        let one = history(&spec, seed).unwrap_or_else(|violation| panic!("{violation}"));
        if seed % 8 == 0 {
            assert_eq!(history(&spec, seed).ok(), Some(one), "seed {seed} twice");
        }
        histories.push(one);
    }
    // Every kind of event must occur often enough to be tested.
    assert!(histories.iter().any(|one| one.cpus > 32));
    type Count = (&'static str, u64, fn(&History) -> u64);
    let counts: [Count; 10] = [
        ("fired", 1_000, |one| one.fired),
        ("cancelled", 1_000, |one| one.cancelled),
        ("offline", 50, |one| one.faults.offline),
        ("deaths", 50, |one| one.faults.deaths),
        ("deaths in callbacks", 5, |one| one.faults.deaths_in_callbacks),
        ("lost", 50, |one| one.faults.lost),
        ("noticed", 20, |one| one.faults.noticed),
        ("late", 50, |one| one.faults.late),
        ("thefts", 50, |one| one.faults.thefts),
        ("wrong times", 50, |one| one.faults.wrong_times),
    ];
    for (what, least, of) in counts {
        let sum: u64 = histories.iter().map(of).sum();
        assert!(sum > least, "{what}: {sum}");
    }
}
