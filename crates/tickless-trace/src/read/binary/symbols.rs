//! Functions by their addresses.

use super::bytes::Bytes;

/// What `/proc/kallsyms` says.
#[derive(Debug, Default)]
pub struct Symbols {
    text: String,
    /// Address, and where the name is in the text; sorted.
    places: Vec<(u64, u32, u32)>,
}

impl Symbols {
    /// The running kernel's. Where it hides addresses from this user, no function has a name.
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
        // Names of one address stay in their order.
        places.sort_by_key(|(address, ..)| *address);
        Symbols { text, places }
    }

    /// The function that has this address in it. O(log n).
    pub fn name(&self, address: u64) -> Option<&str> {
        let end = self.places.partition_point(|(start, ..)| *start <= address);
        let (start, ..) = *self.places.get(end.checked_sub(1)?)?;
        // The first of those that share an address, as the kernel prints it.
        let first = self.places.partition_point(|(other, ..)| *other < start);
        let (_, at, length) = self.places[first];
        self.text.get(at as usize..(at + length) as usize)
    }

    /// The address of a function. O(n).
    pub fn address(&self, name: &str) -> Option<u64> {
        let is_it = |&&(_, at, length): &&(u64, u32, u32)| {
            self.text.get(at as usize..(at + length) as usize) == Some(name)
        };
        self.places.iter().find(is_it).map(|(address, ..)| *address)
    }
}

/// The build ID of the running kernel, if it says.
pub fn build_id_of_this_kernel() -> Option<Vec<u8>> {
    build_id(&std::fs::read("/sys/kernel/notes").ok()?).map(<[u8]>::to_vec)
}

/// The build ID among ELF notes: each is the lengths of a name and of what it holds, a type, and
/// both, which take up whole words.
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

    /// Goal: the note is found behind others, and what is cut short is none.
    #[test]
    fn a_build_id_is_one_of_the_notes() {
        let other = [&[6, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0][..], b"Linux\0\0\0", &[7, 0, 0, 0]];
        let ours = [&[4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &[1, 2, 3, 0]];
        let notes = [other.concat(), ours.concat()].concat();
        assert_eq!(build_id(&notes), Some(&[1, 2, 3][..]));
        for length in 0..notes.len() {
            assert_eq!(build_id(&notes[..length]), None, "{length}");
        }
    }

    #[test]
    fn an_address_is_in_the_function_before_it() {
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
