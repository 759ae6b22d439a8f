//! Parses and prints sizes of buffers, such as `64M`.

/// Parses a size with a unit. Returns kilobytes.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a size; write a number and K, M or G, such as 64M");
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let kilobytes: u64 = match unit.to_ascii_uppercase().as_str() {
        "K" => 1,
        "M" => 1 << 10,
        "G" => 1 << 20,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(kilobytes) {
        Some(size @ 1..=MOST) => Ok(size),
        _ => Err(format!("{text} is not between 1K and 64G")),
    }
}

/// The largest size that is accepted, 64 GB: more than any machine has for each CPU, and so small
/// that calculations do not overflow.
const MOST: u64 = 64 << 20;

pub(super) fn show(kilobytes: u64) -> String {
    match kilobytes {
        size if size % (1 << 20) == 0 => format!("{}G", size >> 20),
        size if size % (1 << 10) == 0 => format!("{}M", size >> 10),
        size => format!("{size}K"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, want) in [("4K", 4), ("64M", 65_536), (" 1g ", 1 << 20)] {
            assert_eq!(parse(text), Ok(want));
        }
        for wrong in ["", "64", "M", "-1M", "0K", "1T", "65G", "18446744073709551615M", "1µ"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!([4, 1_536, 65_536, 1 << 20].map(show), ["4K", "1536K", "64M", "1G"]);
    }
}
