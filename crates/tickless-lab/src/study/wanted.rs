//! The band of a cell in words.

use super::{Band, Cell};
use crate::text::figure;

/// The band of a cell in words; nothing if it has none.
pub fn wanted(cell: &Cell) -> String {
    cell.band.map_or_else(String::new, band)
}

fn band(band: Band) -> String {
    match (band.low, band.high) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("{} to {}", figure(low), figure(high)),
        (Some(low), None) => format!(">= {low}"),
        (None, Some(high)) => format!("<= {high}"),
        (None, None) => String::new(),
    }
}
