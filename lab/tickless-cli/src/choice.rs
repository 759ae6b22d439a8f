//! Parsers for command line options whose value is one of several names. They serve types of crates
//! that do not depend on clap.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tickless_trace::replay::ReplayPolicy;

/// Returns a parser for the values `all`. `describe` returns a value's name and its help text.
pub fn of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    describe: fn(T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = T> {
    names(all.iter().map(|&one| describe(one))).try_map(move |name| {
        let found = all.iter().copied().find(|&one| describe(one).0 == name);
        found.ok_or("no such name")
    })
}

/// Returns a parser for these names, each with its help text.
pub fn names(all: impl Iterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(all.map(|(name, about)| PossibleValue::new(name).help(about)))
}

pub fn policy(all: &'static [ReplayPolicy]) -> impl TypedValueParser<Value = ReplayPolicy> {
    of(all, |policy| {
        let about = match policy {
            ReplayPolicy::Eager => {
                "Every removal of the first timer programs the device: Linux until 5.14"
            }
            ReplayPolicy::Lazy => "No removal programs it",
            ReplayPolicy::RestartAware => {
                "A cancel programs it, a restart is judged as a whole: Linux 5.15 to 7.0"
            }
            ReplayPolicy::LazyTimers => {
                "Restart-aware, but the scheduler's slice timer leaves the device alone"
            }
            ReplayPolicy::DeferredRearm => {
                "Restart-aware, but an interrupt's end leaves the device to the scheduler"
            }
            ReplayPolicy::Linux71 => "Both additions: Linux since 7.1",
        };
        (policy.name(), about)
    })
}
