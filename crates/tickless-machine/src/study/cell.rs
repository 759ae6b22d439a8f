//! One figure of a study, with where it comes from.

use serde::Serialize;

/// Where a figure comes from. Never mixed: who reads a table must know what it shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A parameter was set so that this comes out.
    Calibrated,
    /// Nothing was set for it: it came out.
    Predicted,
    /// Measured now, on the machine at hand.
    Live,
}

/// Where a figure should lie, both ends included.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(into = "[Option<f64>; 2]")]
pub struct Band {
    /// The least; `None` if nothing is too little.
    pub low: Option<f64>,
    /// The most; `None` if nothing is too much.
    pub high: Option<f64>,
}

impl Band {
    /// Between these two.
    pub const fn between(low: f64, high: f64) -> Band {
        Band { low: Some(low), high: Some(high) }
    }

    /// This much and more.
    pub const fn at_least(low: f64) -> Band {
        Band { low: Some(low), high: None }
    }

    /// This much and less.
    pub const fn at_most(high: f64) -> Band {
        Band { low: None, high: Some(high) }
    }

    /// A published figure, give or take so many percent of it.
    pub fn around(published: f64, percent: f64) -> Band {
        let off = published.abs() * percent / 100.0;
        Band::between(published - off, published + off)
    }

    /// A published figure, this many times more or less.
    pub fn times(published: f64, factor: f64) -> Band {
        Band::between(published / factor, published * factor)
    }

    /// Does the value lie in it?
    pub fn contains(&self, value: f64) -> bool {
        self.low.is_none_or(|low| value >= low) && self.high.is_none_or(|high| value <= high)
    }
}

impl From<Band> for [Option<f64>; 2] {
    fn from(band: Band) -> Self {
        [band.low, band.high]
    }
}

/// A figure over the seeds that were run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The median.
    pub value: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Figure {
    /// The median of several runs; zero of none.
    pub fn of(mut values: Vec<f64>) -> Figure {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
        Figure { value: at(values.len() / 2), low: at(0), high: at(values.len().saturating_sub(1)) }
    }
}

/// One figure of a study.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// What it is, such as `32p.before.warm`.
    pub id: String,
    /// What it is counted in.
    pub unit: &'static str,
    /// What the thread reported, if it did; on its own machine.
    pub published: Option<f64>,
    /// Where the value comes from.
    pub role: Role,
    /// The figure: a median, or a count.
    pub value: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Where the value should lie, if anybody says so.
    pub band: Option<Band>,
    /// Does it?
    pub inside: Option<bool>,
    /// Do people see it in another table, so that those of cells need not repeat it?
    #[serde(skip)]
    pub in_exhibit: bool,
}

impl Cell {
    /// A figure without a published counterpart and without a band.
    pub fn new(
        id: impl Into<String>,
        unit: &'static str,
        role: Role,
        figure: impl Into<Figure>,
    ) -> Cell {
        let Figure { value, low, high } = figure.into();
        Cell {
            id: id.into(),
            unit,
            published: None,
            role,
            value,
            low,
            high,
            band: None,
            inside: None,
            in_exhibit: false,
        }
    }

    /// A figure that came out, without a published counterpart and without a band.
    pub fn predicted(id: impl Into<String>, unit: &'static str, figure: Figure) -> Cell {
        Cell::new(id, unit, Role::Predicted, figure)
    }

    /// A figure that was measured on the machine at hand.
    pub fn live(id: impl Into<String>, unit: &'static str, figure: impl Into<Figure>) -> Cell {
        Cell::new(id, unit, Role::Live, figure)
    }

    /// A figure that a parameter was set from, beside the published one.
    pub fn calibrated(
        id: impl Into<String>,
        unit: &'static str,
        published: f64,
        figure: Figure,
    ) -> Cell {
        let cell = Cell::predicted(id, unit, figure).published(published);
        Cell { role: Role::Calibrated, ..cell }
    }

    /// Beside what the thread reported.
    #[must_use]
    pub fn published(mut self, published: f64) -> Cell {
        self.published = Some(published);
        self
    }

    /// People see it in another table: those of cells do not repeat it, JSON and CSV have it.
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
        let cell = Cell::live("a", "ns", Figure { value: 3.0, low: 3.0, high: 3.0 });
        assert_eq!((cell.inside, cell.band), (None, None));
        assert_eq!(cell.clone().within(Band::at_most(3.0)).inside, Some(true));
        assert_eq!(cell.within(Band::at_most(2.9)).inside, Some(false));
    }
}
