//! What a cell claims, and its band, in words.

use super::{Band, Cell, Scale};
use crate::text::figure;

/// The band of a cell's value in words; nothing if it has none, or has one for its effect.
pub fn wanted(cell: &Cell) -> String {
    match (cell.effect, cell.band) {
        (None, Some(value)) => band(value),
        _ => String::new(),
    }
}

/// What a cell claims: its effect, the published one, the null model's, the band and the score,
/// each in words. `None` for one that claims nothing.
pub fn claim(cell: &Cell) -> Option<[String; 5]> {
    let unit = match cell.effect_unit {
        Some(Scale::Percent) => " %",
        Some(Scale::Times) => "x",
        _ => "",
    };
    let one = |value: Option<f64>| {
        value.map_or_else(|| "-".to_string(), |value| format!("{}{unit}", figure(value)))
    };
    let published = match cell.published_spread {
        Some([low, high]) if low != high => format!("{} to {}{unit}", figure(low), figure(high)),
        _ => one(cell.published_effect),
    };
    let null = match cell.role {
        // That is a value, and the same to a twentieth.
        super::Role::Implied => "the formula's".to_string(),
        _ => one(cell.null_model),
    };
    let wanted = cell.band.map_or_else(|| "-".to_string(), band);
    let score = cell.score.map_or_else(|| "-".to_string(), |score| format!("{score:.2}"));
    Some([one(Some(cell.effect?)), published, null, wanted, score])
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
