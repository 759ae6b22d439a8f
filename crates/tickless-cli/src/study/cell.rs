//! One figure of a study, with where it comes from.

use crate::measure::Spread;
use serde::Serialize;
pub use tickless_machine::study::Band;

/// Where a figure comes from. Never mixed: who reads a table must know what it shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A parameter of the simulated machine was set so that this comes out.
    Calibrated,
    /// Nothing was set for it: it came out.
    Predicted,
    /// Measured now, on the machine at hand.
    Live,
}

/// One figure of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// What it is, such as `32p.before.warm`.
    pub id: String,
    /// What it is counted in.
    pub unit: &'static str,
    /// What the thread reported, if it did; on its own machine, not on this one.
    pub published: Option<f64>,
    /// Where the value comes from.
    pub role: Role,
    /// The figure: a median, or a count.
    pub value: f64,
    /// The least of the repetitions.
    pub low: f64,
    /// The greatest of the repetitions.
    pub high: f64,
    /// Where the value should lie, if anybody says so.
    pub band: Option<Band>,
    /// Does it?
    pub inside: Option<bool>,
    /// Do people see it in an exhibit, so that tables need not repeat it?
    #[serde(skip)]
    pub in_exhibit: bool,
}

impl Cell {
    /// A figure without a published counterpart and without a band.
    pub fn new(id: impl Into<String>, unit: &'static str, role: Role, spread: Spread) -> Cell {
        let Spread { median, low, high } = spread;
        Cell {
            id: id.into(),
            unit,
            published: None,
            role,
            value: median,
            low,
            high,
            band: None,
            inside: None,
            in_exhibit: false,
        }
    }

    /// A live figure.
    pub fn live(id: impl Into<String>, unit: &'static str, spread: Spread) -> Cell {
        Cell::new(id, unit, Role::Live, spread)
    }

    /// Beside what the thread reported.
    #[must_use]
    pub fn published(mut self, published: f64) -> Cell {
        self.published = Some(published);
        self
    }

    /// People see it in an exhibit: tables do not repeat it, JSON and CSV have it.
    #[must_use]
    pub fn in_exhibit(mut self) -> Cell {
        self.in_exhibit = true;
        self
    }

    /// Should lie in this band; whether it does is decided here.
    #[must_use]
    pub fn within(mut self, band: Band) -> Cell {
        self.inside = Some(band.contains(self.value));
        self.band = Some(band);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a band includes its ends, an open end takes everything, and not-a-number is never
    /// inside.
    #[test]
    fn bands_say_what_is_inside() {
        assert!(Band::between(1.0, 2.0).contains(1.0) && Band::between(1.0, 2.0).contains(2.0));
        assert!(!Band::between(1.0, 2.0).contains(2.01) && !Band::between(1.0, 2.0).contains(0.99));
        assert!(Band::at_least(2.0).contains(1e30) && !Band::at_least(2.0).contains(1.9));
        assert!(Band::at_most(2.0).contains(-1e30) && !Band::at_most(2.0).contains(2.1));
        assert_eq!(Band::around(200.0, 15.0), Band::between(170.0, 230.0));
        assert!(!Band::at_most(2.0).contains(f64::NAN) && !Band::at_least(2.0).contains(f64::NAN));
        let json = serde_json::to_string(&Band::at_least(2.0)).unwrap();
        assert_eq!(json, "[2.0,null]");
    }

    #[test]
    fn a_cell_knows_whether_it_is_inside() {
        let cell = Cell::live("a", "ns", Spread::exactly(3.0));
        assert_eq!((cell.inside, cell.band), (None, None));
        assert_eq!(cell.clone().within(Band::at_most(3.0)).inside, Some(true));
        assert_eq!(cell.within(Band::at_most(2.9)).inside, Some(false));
    }
}
