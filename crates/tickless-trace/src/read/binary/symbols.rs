//! Finds the names of kernel functions by their addresses, and the reverse.

use super::bytes::Bytes;

#[derive(Debug, Default)]
pub struct Symbols {
    text: String,
    /// The functions, sorted by address: (address, place of the name in `text`, length of the
    /// name).
    places: Vec<(u64, u32, u32)>,
}

impl Symbols {
    /// Reads the running kernel's symbols. If the kernel hides addresses from this user, no
    /// function has a name.
    pub fn of_this_kernel() -> Symbols {
        Symbols::parse(std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// Reads lines of `ffffffff81000000 T name`. O(n log n).
    pub fn parse(text: String) -> Symbols {
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

pub fn build_id_of_this_kernel() -> Option<Vec<u8>> {
    build_id(&std::fs::read("/sys/kernel/notes").ok()?).map(<[u8]>::to_vec)
}

/// Finds the build ID among ELF notes. Each note has the length of its name, the length of its
/// contents, a type, the name, and the contents. The latter two are padded to 4 bytes.
fn build_id(notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    let mut notes = Bytes(notes);
    loop {
        let (name, content, kind) = (notes.u32()?, notes.u32()?, notes.u32()?);
        let mut padded = |length: u32| {
            let bytes = notes.take(length as usize)?;
            notes.take(length.next_multiple_of(4) as usize - bytes.len())?;
            Some(bytes)
        };
        let (name, content) = (padded(name)?, padded(content)?);
        if kind == BUILD_ID && name == b"GNU\0" {
            return Some(content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_among_notes() {
        let other = [&[6, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0][..], b"Linux\0\0\0", &[7, 0, 0, 0]];
        let ours = [&[4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &[1, 2, 3, 0]];
        let notes = [other.concat(), ours.concat()].concat();
        assert_eq!(build_id(&notes), Some(&[1, 2, 3][..]));
        for length in 0..notes.len() {
            assert_eq!(build_id(&notes[..length]), None, "{length}");
        }
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let text = "ffffffff81000100 t later\nffffffff81000000 T first\n\nbroken\n\
                    ffffffff81000200 t one\nffffffff81000200 t two\n0000000000000000 A hidden\n";
        let symbols = Symbols::parse(text.to_string());
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8100_01ff), Some("later"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0200), Some("one"));
        assert_eq!(symbols.name(7), None);
        assert_eq!(symbols.address("later"), Some(0xffff_ffff_8100_0100));
        assert_eq!(symbols.address("hidden"), None);
    }
}
