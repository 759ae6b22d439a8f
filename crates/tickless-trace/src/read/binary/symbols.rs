//! Functions by their addresses.

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

#[cfg(test)]
mod tests {
    use super::*;

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
