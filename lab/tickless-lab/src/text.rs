//! Formats figures as text, for tables, plots and messages, and reads fields of texts.

pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let decimals = usize::from(value < 99.95);
    format!("{value:.decimals$} {unit}")
}

/// Formats a number to three significant digits. Keeps all digits before the decimal point.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_string();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = if value.fract() == 0.0 { 0 } else { (2 - magnitude).clamp(0, 6) as usize };
    format!("{value:.decimals$}")
}

/// Returns the rest of the first line that begins with the key and a colon; empty if none does.
pub fn field<'t>(text: &'t str, key: &str) -> &'t str {
    let mut found = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    found.next().unwrap_or_default()
}

pub fn grouped(value: f64) -> String {
    let text = figure(value);
    let (sign, digits) = text.split_at(text.len() - text.trim_start_matches('-').len());
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_unit() {
        for (ns, want) in [
            (0, "0.0 us"),
            (8_103, "8.1 us"),
            (99_949, "99.9 us"),
            (118_271, "118 us"),
            (999_499, "999 us"),
            (4_042_751, "4.0 ms"),
            (742_916_095, "743 ms"),
            (1_500_000_000, "1.5 s"),
        ] {
            assert_eq!(time(ns), want);
        }
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, want) in [
            (0.0, "0"),
            (0.000_123_4, "0.000123"),
            (1.353, "1.35"),
            (4.0, "4"),
            (53.24, "53.2"),
            (29_000.4, "29000"),
            (-0.52, "-0.520"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(figure(value), want);
        }
    }

    #[test]
    fn thousands_are_grouped() {
        for (value, want) in [
            (0.0, "0"),
            (95.0, "95"),
            (1_234.0, "1,234"),
            (3_145_329.0, "3,145,329"),
            (5.324, "5.32"),
            (-0.25, "-0.250"),
            (-12_345.6, "-12,346"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(grouped(value), want);
        }
    }
}
