//! `key=value` words and numbers, read from bytes.
//!
//! Keys are found by name, never by position: kernels add fields, and trace-cmd's plug-ins print
//! `now=` before `function=` where the kernel does the opposite.

/// Returns the `key=value` words of an event's text in order. Words without `=` are skipped, and
/// so are the brackets of `[timeout=1]`.
pub(super) fn fields(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b' ').filter_map(|word| {
        let word = word.strip_prefix(b"[").unwrap_or(word);
        let equals = word.iter().position(|&byte| byte == b'=')?;
        let value = &word[equals + 1..];
        Some((&word[..equals], value.strip_suffix(b"]").unwrap_or(value)))
    })
}

/// Returns the hash of a name (FNV-1a), by which names in a binary trace are compared.
#[inline(always)]
pub(super) const fn hash(mut name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    while let [first, rest @ ..] = name {
        hash = (hash ^ *first as u64).wrapping_mul(0x100_0000_01b3);
        name = rest;
    }
    hash
}

/// The value of a field: as it was printed, or as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word<'a> {
    Text(&'a [u8]),
    Number(u64),
}

impl<'a> Word<'a> {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Word::Text(text) => number(text),
            Word::Number(number) => Some(number),
        }
    }

    /// Reads an address, which is printed in hexadecimal digits with or without prefix.
    pub(super) fn address(self) -> Option<u64> {
        match self {
            Word::Text(text) => hex(text.strip_prefix(b"0x").unwrap_or(text)),
            Word::Number(number) => Some(number),
        }
    }

    pub(super) fn text(self) -> Option<&'a [u8]> {
        match self {
            Word::Text(text) => Some(text),
            Word::Number(_) => None,
        }
    }
}

pub(super) fn number(word: &[u8]) -> Option<u64> {
    match word.strip_prefix(b"0x") {
        Some(digits) => hex(digits),
        None => decimal(word),
    }
}

/// Reads a number of decimal digits; `None` if the word contains anything else.
pub(super) fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Reads a decimal number with an optional minus sign.
pub(super) fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => 0i64.checked_sub_unsigned(decimal(digits)?),
        None => i64::try_from(decimal(word)?).ok(),
    }
}

/// Reads one to sixteen hexadecimal digits without prefix.
pub(super) fn hex(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 16 {
        return None;
    }
    word.iter()
        .try_fold(0u64, |value, &byte| Some(value << 4 | u64::from(char::from(byte).to_digit(16)?)))
}

/// Returns text that is safe to print: invalid UTF-8 and control characters are replaced, and a
/// name longer than any kernel symbol is cut.
pub(super) fn printable(text: &[u8]) -> String {
    const KERNEL_SYMBOL_LEN_MAX: usize = 512;
    let text = &text[..text.len().min(KERNEL_SYMBOL_LEN_MAX)];
    String::from_utf8_lossy(text).replace(char::is_control, "\u{fffd}")
}

/// Returns the place at which `needle` begins in `text`.
pub(super) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    (0..text.len()).find(|&at| text[at] == needle[0] && text[at..].starts_with(needle))
}
