//! Options that take one of several names, for types that know nothing of command lines.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Takes the name of one of `all`; `told` returns its name and what help says about it.
pub fn of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    told: fn(T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = T> {
    let value = |&one: &T| {
        let (name, about) = told(one);
        PossibleValue::new(name).help(about)
    };
    PossibleValuesParser::new(all.iter().map(value)).try_map(move |name| {
        let found = all.iter().copied().find(|&one| told(one).0 == name);
        found.ok_or("no such name")
    })
}
