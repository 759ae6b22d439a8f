//! The table of callback names: a trace repeats a few dozen names many thousand times.

use std::collections::HashMap;

/// A name's place in its trace's [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameId(pub(super) u16);

impl NameId {
    /// The name of a callback the line did not print.
    pub const UNKNOWN: NameId = NameId(0);

    /// This name's place in a slice of per-name counts; below [`Names::len`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every name of one trace, in the order they appeared. O(1) either way.
#[derive(Debug)]
pub struct Names {
    by_id: Vec<Box<str>>,
    by_name: HashMap<Box<[u8]>, NameId>,
}

impl Names {
    /// The name itself; `?` for [`NameId::UNKNOWN`] and for ids of another trace.
    pub fn name(&self, id: NameId) -> &str {
        self.by_id.get(id.index()).map_or("?", |name| name)
    }

    /// The id of a name, if the trace has it.
    pub fn find(&self, name: &str) -> Option<NameId> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// How many names there are, `?` included.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Never: `?` is always there.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn new() -> Names {
        Names { by_id: vec!["?".into()], by_name: HashMap::new() }
    }

    /// The id of `name`, new or known. A trace with more names than ids (a kernel has
    /// far fewer timer callbacks) folds the rest into [`NameId::UNKNOWN`].
    pub(super) fn intern(&mut self, name: &[u8]) -> NameId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let Ok(next) = u16::try_from(self.by_id.len()) else { return NameId::UNKNOWN };
        self.by_id.push(super::fields::printable(name).into());
        self.by_name.insert(name.into(), NameId(next));
        NameId(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_id() {
        let mut names = Names::new();
        let tick = names.intern(b"tick_nohz_handler");
        assert_ne!(tick, names.intern(b"hrtimer_wakeup"));
        assert_eq!(tick, names.intern(b"tick_nohz_handler"));
        assert_eq!(names.name(tick), "tick_nohz_handler");
        assert_eq!(names.find("tick_nohz_handler"), Some(tick));
        assert_eq!((names.find("?"), names.name(NameId::UNKNOWN)), (None, "?"));
    }

    #[test]
    fn more_names_than_ids_are_folded() {
        let mut names = Names::new();
        for number in 0..70_000u32 {
            names.intern(number.to_string().as_bytes());
        }
        assert_eq!(names.len(), 1 << 16);
        assert_eq!(names.intern(b"one more"), NameId::UNKNOWN);
    }
}
