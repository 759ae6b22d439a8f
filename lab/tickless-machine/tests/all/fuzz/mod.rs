//! Random tests of the timer code on random simulated machines, with injected faults. One test run
//! is a *history*; an *oracle* checks each callback and each result of a call in it.
//!
//! A seed decides everything: the machine (2 to 64 CPUs), the settings, the timers, what each CPU's
//! program does with its own timers, how long callbacks take, and the faults. A history begins with
//! the *safety phase*, in which faults are injected. No faults are injected in the *liveness phase*
//! that follows: every timer that is still armed must fire in bounded time.
//!
//! The faults and the checkers: `docs/book/src/machine.md`.

// The guarantees that this checks, by their numbers in the contract: for expiry W1 (never early),
// X10 (no callback of a cancelled arming), D8 and R13 (no timer or event lost); for cancelling X1
// (waits for the callback), X2 (callbacks do not overlap); for idle CPUs R1 and R6 (the device is
// armed for the first timer).

mod faults;
mod history;
mod oracle;
mod program;

use history::{History, history};
use tickless_machine::machines;

/// Goal: no history breaks a rule of the checkers, and each is a function of its seed.
/// `TICKLESS_SEEDS` is the number of seeds, 40 by default; `TICKLESS_SEED` runs that one alone.
#[test]
fn histories_keep_the_contract() {
    let spec = machines::named("haswell-ex-4s").unwrap().unwrap();
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
    };
    if let Some(seed) = number("TICKLESS_SEED") {
        let one = history(&spec, seed).unwrap_or_else(|broken| panic!("{broken}"));
        return println!("{one:?}");
    }
    let mut histories = Vec::new();
    for seed in 1..=number("TICKLESS_SEEDS").unwrap_or(40) {
        let one = history(&spec, seed).unwrap_or_else(|broken| panic!("{broken}"));
        if seed % 8 == 0 {
            assert_eq!(history(&spec, seed).ok(), Some(one), "seed {seed} twice");
        }
        histories.push(one);
    }
    // Every kind of event must occur often enough to be tested.
    assert!(histories.iter().any(|one| one.cpus > 32));
    type Count = (&'static str, u64, fn(&History) -> u64);
    let counts: [Count; 13] = [
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
        ("suspends", 20, |one| one.faults.suspends),
        ("stands", 5, |one| one.faults.stands),
        ("rates", 3, |one| one.faults.rates),
    ];
    for (what, least, of) in counts {
        let sum: u64 = histories.iter().map(of).sum();
        assert!(sum > least, "{what}: {sum}");
    }
}
