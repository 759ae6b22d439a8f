//! The figures of a live measurement: their names, headings and units, and how they become cells
//! (the named figures of a study's result) and table rows.

use super::Cell;
use crate::measure::Spread;
use crate::text::figure;
use std::iter::once;

/// A figure of a measurement `T`: its name in the study's result, its heading in tables, its unit,
/// and the function that returns its value.
pub type Column<T> = (&'static str, &'static str, &'static str, fn(&T) -> f64);

pub fn header<T>(columns: &[Column<T>]) -> Vec<String> {
    let headings = columns.iter().map(|(_, heading, ..)| heading.to_string());
    once(String::new()).chain(headings).collect()
}

pub fn row<T>(label: String, columns: &[Column<T>], taken: &[T]) -> Vec<String> {
    let medians = columns.iter().map(|(.., of)| figure(Spread::of(taken.iter().map(of)).median));
    once(label).chain(medians).collect()
}

/// Returns the cells for the figures that `row` shows. A figure that was not measured (its value is
/// not-a-number) has no cell.
pub fn cells<T>(prefix: &str, columns: &[Column<T>], taken: &[T]) -> Vec<Cell> {
    let cell = |(name, _, unit, of): &Column<T>| {
        let spread = Spread::of(taken.iter().map(of));
        Cell::live(format!("{prefix}.{name}"), unit, spread).in_exhibit()
    };
    columns.iter().map(cell).filter(|cell| !cell.value.is_nan()).collect()
}
