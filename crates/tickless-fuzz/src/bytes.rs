//! The input bytes of a fuzz target as a sequence of choices. A change of one byte changes one
//! choice, so that the fuzzer's mutations stay small.

pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    pub(crate) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Returns a number of any magnitude: one byte decides its length in bits, and one or two bytes
    /// its highest bits.
    pub(crate) fn number(&mut self) -> u64 {
        let (bits, top) = (self.byte() % 65, u64::from(self.byte()));
        match bits {
            0 => 0,
            1..=8 => top & ((1 << bits) - 1),
            _ => top << (bits - 8) | u64::from(self.byte()) << (bits - 8) >> 8,
        }
    }
}
