//! Stores each name in a trace once: a trace repeats a few dozen names many thousand times.

use super::fields::{Word, printable};
use super::symbols::Symbols;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NameId(pub(super) u16);

impl NameId {
    /// Stands for the name of a callback that was not recorded.
    pub const UNKNOWN: NameId = NameId(0);

    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of the tick's callback, now and before Linux 6.8. The tick uses CLOCK_MONOTONIC.
pub const TICK_FUNCTIONS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

/// The callback that wakes a thread when its sleep ends.
pub const SLEEPER_FUNCTION: &str = "hrtimer_wakeup";

/// The names of one trace, in the order of their appearance. Lookups are O(1).
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The names from id 1 on; id 0 is [`NameId::UNKNOWN`].
    known: Vec<Box<str>>,
    by_name: FxHashMap<Box<[u8]>, NameId>,
    /// In a binary trace, the names of functions by their addresses.
    pub(super) symbols: Symbols,
    by_address: FxHashMap<u64, NameId>,
}

impl Names {
    /// Returns the name with an id; `?` for [`NameId::UNKNOWN`] and for ids of another trace.
    pub fn name(&self, id: NameId) -> &str {
        let known = id.index().checked_sub(1).and_then(|place| self.known.get(place));
        known.map_or("?", |name| name)
    }

    pub fn find(&self, name: &str) -> Option<NameId> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// Adds the names of another trace, and returns the id here of each of its ids.
    pub(super) fn add(&mut self, others: &Names) -> Vec<NameId> {
        let mut names: Vec<(NameId, &[u8])> =
            others.by_name.iter().map(|(name, id)| (*id, &**name)).collect();
        names.sort_unstable();
        let ids = names.into_iter().map(|(_, name)| self.intern(name));
        std::iter::once(NameId::UNKNOWN).chain(ids).collect()
    }

    pub fn tick_functions(&self) -> [Option<NameId>; 2] {
        TICK_FUNCTIONS.map(|name| self.find(name))
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        std::iter::once("?").chain(self.known.iter().map(|name| &**name))
    }

    /// Returns the id of a function's name, which is printed, or of its address.
    pub(super) fn of_word(&mut self, word: Word<'_>) -> NameId {
        let address = match word {
            Word::Text(text) => return self.function(text),
            Word::Number(address) => address,
        };
        if let Some(&id) = self.by_address.get(&address) {
            return id;
        }
        let name = self.symbols.name(address).map(ToString::to_string);
        let id = self.intern(name.unwrap_or_else(|| format!("{address:#x}")).as_bytes());
        self.by_address.insert(address, id);
        id
    }

    /// Returns the id of a function's name.
    pub(super) fn function(&mut self, word: &[u8]) -> NameId {
        // Drop what follows the name: trace-cmd prints `tick_nohz_handler/0x0`, the kernel's `%pS`
        // prints `name+0x0/0x90`.
        let end = word.iter().position(|byte| matches!(byte, b'/' | b'+'));
        let name = &word[..end.unwrap_or(word.len())];
        if name.is_empty() { NameId::UNKNOWN } else { self.intern(name) }
    }

    /// Returns the id of `name`, which is added if it is new. Once all ids are taken, further names
    /// become [`NameId::UNKNOWN`]; a kernel has far fewer timer callbacks.
    pub(super) fn intern(&mut self, name: &[u8]) -> NameId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let Ok(next) = u16::try_from(1 + self.known.len()) else { return NameId::UNKNOWN };
        self.known.push(printable(name).into());
        self.by_name.insert(name.into(), NameId(next));
        NameId(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_last_id_are_unknown() {
        let mut names = Names::default();
        for number in 0..70_000u32 {
            names.intern(number.to_string().as_bytes());
        }
        assert_eq!(names.iter().count(), 1 << 16);
        assert_eq!(names.intern(b"one more"), NameId::UNKNOWN);
        let last = names.find("65534").unwrap();
        assert_eq!((names.intern(b"65534"), names.name(last)), (last, "65534"));
        assert_eq!((names.find("?"), names.name(NameId::UNKNOWN)), (None, "?"));
    }
}
