//! Reads numbers and strings from a buffer that may be cut off anywhere.

/// The bytes of a buffer that have not been read yet. Reading past the end returns `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes as many bytes as a number in the file says. In a damaged file that number may be huge.
    pub(super) fn take_u64(&mut self, length: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(length).ok()?)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes bytes whose length is in the 4 bytes before them.
    pub(super) fn sized_u32(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take_u64(length.into())
    }

    /// Takes bytes whose length is in the 8 bytes before them.
    pub(super) fn sized_u64(&mut self) -> Option<&'a [u8]> {
        let length = self.u64()?;
        self.take_u64(length)
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.take(end)?;
        self.u8()?;
        Some(text)
    }
}

/// Returns the bytes from `offset` on; `None` if that is past the end.
pub(super) fn from(all: &[u8], offset: u64) -> Option<Bytes<'_>> {
    all.get(usize::try_from(offset).ok()?..).map(Bytes)
}
