//! Finds the names of kernel functions by their addresses, and the reverse.

use super::fields::find;

#[derive(Clone, Debug, Default)]
pub struct Symbols {
    text: String,
    /// The functions, sorted by address: (address, index of the name in `text`, its length).
    places: Vec<(u64, u32, u32)>,
}

impl Symbols {
    /// Reads the running kernel's symbols. If the kernel hides addresses, no function has a name.
    pub fn of_this_kernel() -> Symbols {
        Symbols::parse(std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// Reads the running kernel's symbols, if its build id is among these and `_text` is at this
    /// address: then it is the kernel that was recorded.
    pub(super) fn of_kernel(build_ids: &[u8], text: u64) -> Option<Symbols> {
        const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
        let notes = std::fs::read("/sys/kernel/notes").ok()?;
        let id = notes.get(find(&notes, NOTE)? + NOTE.len()..)?.get(..20)?;
        let symbols = find(build_ids, id).map(|_| Symbols::of_this_kernel())?;
        (symbols.address("_text") == Some(text)).then_some(symbols)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Reads lines of `ffffffff81000000 T name`. O(n log n) in the number of lines.
    pub(super) fn parse(text: String) -> Symbols {
        let start = text.as_ptr().addr();
        let place = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let name = words.nth(1)?;
            let at = u32::try_from(name.as_ptr().addr() - start).ok()?;
            Some((address, at, u32::try_from(name.len()).ok()?))
        };
        let mut places: Vec<_> = text.lines().filter_map(place).collect();
        places.retain(|(address, ..)| *address != 0);
        // The sort is stable: names of one address keep their order.
        places.sort_by_key(|(address, ..)| *address);
        Symbols { text, places }
    }

    fn text(&self, at: u32, length: u32) -> Option<&str> {
        self.text.get(at as usize..(at + length) as usize)
    }

    pub fn name(&self, address: u64) -> Option<&str> {
        let end = self.places.partition_point(|(start, ..)| *start <= address);
        let (start, ..) = *self.places.get(end.checked_sub(1)?)?;
        // If several names have this address, return the first one, as the kernel prints it.
        let first = self.places.partition_point(|(other, ..)| *other < start);
        let (_, at, length) = self.places[first];
        self.text(at, length)
    }

    pub fn address(&self, name: &str) -> Option<u64> {
        let mut places = self.places.iter();
        let found = places.find(|&&(_, at, length)| self.text(at, length) == Some(name));
        found.map(|(address, ..)| *address)
    }
}
