//! A *cell*: one figure of a study, with its origin and the effect that it claims for a mechanism.
//!
//! A simulated figure gets a verdict (right or wrong) only if it could have been wrong. So a cell
//! with a *claim* has three parts: the *effect*, which is how much the mechanism changes the
//! figure; the *null model*, which is the effect that there would be if the mechanism did nothing;
//! and a *band*, the range in which the effect should lie. The band must not contain the null
//! model. If a formula gives the figure from the same parameters, the cell is *implied*: the
//! simulation has only calculated the formula.

use crate::measure::Spread;
use crate::text::figure;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A parameter of the simulated machine was fitted so that the simulation gives this figure.
    Calibrated,
    /// A formula gives the figure from the machine's parameters, so the simulation proves nothing.
    Implied,
    #[default]
    Predicted,
    Live,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Role::Calibrated => "calibrated",
            Role::Implied => "implied",
            Role::Predicted => "predicted",
            Role::Live => "live",
        }
    }
}

/// The range in which a figure should lie: its lower and its upper end, both included. `None` for
/// no limit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Band(pub Option<f64>, pub Option<f64>);

impl Band {
    pub const fn between(low: f64, high: f64) -> Band {
        Band(Some(low), Some(high))
    }

    pub const fn at_least(low: f64) -> Band {
        Band(Some(low), None)
    }

    pub const fn at_most(high: f64) -> Band {
        Band(None, Some(high))
    }

    pub fn around(published: f64, percent: f64) -> Band {
        let off = published.abs() * percent / 100.0;
        Band::between(published - off, published + off)
    }

    pub fn times(published: f64, factor: f64) -> Band {
        let ends = [published / factor, published * factor];
        Band::between(ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    pub fn contains(&self, value: f64) -> bool {
        self.0.is_none_or(|low| value >= low) && self.1.is_none_or(|high| value <= high)
    }
}

/// The unit of an effect, which is the change that a mechanism makes. It also determines how the
/// distance between two effects is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Scale {
    #[serde(rename = "%")]
    Percent,
    /// A factor. Distances are measured on a logarithmic scale.
    #[serde(rename = "x")]
    Times,
    /// The cell's own unit.
    #[serde(rename = "")]
    Plain,
}

impl Scale {
    /// Returns how far two effects are apart on this scale: for ratios, in logarithms.
    fn distance(self, one: f64, other: f64) -> f64 {
        match self {
            Scale::Times => {
                let log = |value: f64| value.max(f64::MIN_POSITIVE).ln();
                (log(one) - log(other)).abs()
            }
            Scale::Percent | Scale::Plain => (one - other).abs(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    pub effect: f64,
    pub scale: Scale,
    /// The effect without the mechanism.
    pub null_model: f64,
    /// The published effect: the least and the greatest of the published runs.
    pub published: Option<[f64; 2]>,
    pub band: Band,
}

impl Claim {
    pub fn change(before: f64, after: f64, band: Band) -> Claim {
        let effect = 100.0 * (after / before - 1.0);
        Claim { effect, scale: Scale::Percent, null_model: 0.0, published: None, band }
    }

    pub fn times_less(before: f64, after: f64, band: Band) -> Claim {
        let effect = before / after;
        Claim { effect, scale: Scale::Times, null_model: 1.0, published: None, band }
    }

    /// Makes a claim on the figure itself rather than on a change of it. Without the mechanism, the
    /// figure would be `null_model`.
    pub fn value(effect: f64, null_model: f64, band: Band) -> Claim {
        Claim { effect, scale: Scale::Plain, null_model, published: None, band }
    }

    #[must_use]
    pub fn published(mut self, low: f64, high: f64) -> Claim {
        self.published = Some([low.min(high), low.max(high)]);
        self
    }

    /// Returns the middle of the published runs.
    pub fn published_effect(&self) -> Option<f64> {
        self.published.map(|[low, high]| f64::midpoint(low, high))
    }

    /// Returns the score: how far the simulated effect goes from the null model towards the
    /// published effect. It is 1 if the simulation reaches the published effect, 0 if it is no
    /// better than the null model, and negative if it is worse.
    pub fn score(&self) -> Option<f64> {
        let [low, high] = self.published?;
        let off = |effect: f64| self.scale.distance(effect, effect.clamp(low, high));
        let null = off(self.null_model);
        (null > 0.0 && self.effect.is_finite()).then(|| 1.0 - off(self.effect) / null)
    }

    /// Returns whether the effect lies in its band. `None` if the null model lies in the band too:
    /// then the claim could not fail.
    fn verdict(&self) -> Option<bool> {
        (!self.band.contains(self.null_model)).then(|| self.band.contains(self.effect))
    }
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Cell {
    pub id: String,
    pub unit: &'static str,
    pub published: Option<f64>,
    pub role: Role,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub repetitions: usize,
    pub band: Option<Band>,
    pub inside: Option<bool>,
    #[serde(flatten)]
    pub compared: Compared,
}

/// What a figure is compared with, beside its band. Serialises to keys of the cell.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Compared {
    pub claim: Option<Claim>,
    /// The value of the formula that implies the figure.
    formula: Option<f64>,
}

impl Compared {
    /// Returns the effect if the mechanism did nothing. For an implied cell, its formula's value.
    pub fn null_model(&self) -> Option<f64> {
        self.formula.or(self.claim.map(|claim| claim.null_model))
    }
}

impl Serialize for Compared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let claim = self.claim.as_ref();
        let mut keys = serializer.serialize_map(None)?;
        keys.serialize_entry("effect", &claim.map(|claim| claim.effect))?;
        keys.serialize_entry("effect_unit", &claim.map(|claim| claim.scale))?;
        keys.serialize_entry("published_effect", &claim.and_then(Claim::published_effect))?;
        keys.serialize_entry("published_spread", &claim.and_then(|claim| claim.published))?;
        keys.serialize_entry("null_model", &self.null_model())?;
        keys.serialize_entry("score", &claim.and_then(Claim::score))?;
        keys.end()
    }
}

/// A predicted figure that differs from a formula's result by at most this part counts as implied
/// by the formula: reproducing it shows nothing.
const IMPLIED: f64 = 0.05;

impl Cell {
    /// Makes a cell with a figure and its origin, without a published figure or a claim.
    pub fn new(
        id: impl Into<String>,
        unit: &'static str,
        role: Role,
        figure: impl Into<Spread>,
    ) -> Cell {
        let Spread { median: value, low, high, count: repetitions } = figure.into();
        let id = id.into();
        Cell { id, unit, role, value, low, high, repetitions, ..Cell::default() }
    }

    pub fn predicted(id: impl Into<String>, unit: &'static str, figure: impl Into<Spread>) -> Cell {
        Cell::new(id, unit, Role::Predicted, figure)
    }

    pub fn live(id: impl Into<String>, unit: &'static str, figure: impl Into<Spread>) -> Cell {
        Cell::new(id, unit, Role::Live, figure)
    }

    /// Makes a cell, which is one figure of a study, for a simulated value to which a parameter was
    /// fitted. It proves nothing, because the fit makes the simulation reproduce `published`.
    pub fn calibrated(
        id: impl Into<String>,
        unit: &'static str,
        published: f64,
        figure: impl Into<Spread>,
    ) -> Cell {
        let cell = Cell::predicted(id, unit, figure).published(published);
        Cell { role: Role::Calibrated, ..cell }
    }

    #[must_use]
    pub fn published(mut self, published: f64) -> Cell {
        self.published = Some(published);
        self
    }

    /// Sets the range in which the figure should be, and whether the figure is in this range.
    #[must_use]
    pub fn within(mut self, band: impl Into<Option<Band>>) -> Cell {
        self.band = band.into();
        self.inside = self.band.map(|band| band.contains(self.value));
        self
    }

    /// Removes the published figure, the claim and the verdict, because they apply to the machine
    /// of the published report, and this cell's value is from another machine.
    #[must_use]
    pub fn unpublished(self) -> Cell {
        let Cell { id, unit, value, low, high, repetitions, .. } = self;
        Cell { id, unit, value, low, high, repetitions, ..Cell::default() }
    }

    /// Adds a claim about the mechanism's effect, and the verdict on it. There is no verdict if the
    /// null model lies in the band too.
    #[must_use]
    pub fn claims(mut self, claim: Claim) -> Cell {
        self.band = Some(claim.band);
        self.inside = claim.verdict();
        self.compared.claim = Some(claim);
        self
    }

    /// Compares the cell with the value that a formula gives from the same parameters. If they
    /// agree within a twentieth, the cell becomes implied: then a verdict of "right" is removed,
    /// because it would prove nothing, but a verdict of "wrong" stays.
    #[must_use]
    pub fn beside_formula(mut self, value: f64) -> Cell {
        if self.role == Role::Predicted && (self.value / value - 1.0).abs() <= IMPLIED {
            self.role = Role::Implied;
            self.compared.formula = Some(value);
            self.inside = self.inside.filter(|inside| !inside);
        }
        self
    }
}

pub fn wanted(cell: &Cell) -> String {
    match (cell.compared.claim, cell.band) {
        (None, Some(value)) => band(value),
        _ => String::new(),
    }
}

/// Returns a cell's claim in words: the simulated effect, the published effect, the effect if the
/// mechanism did nothing, the band and the score. `None` for a cell without a claim.
pub fn claim(cell: &Cell) -> Option<[String; 5]> {
    let claim = cell.compared.claim?;
    let unit = match claim.scale {
        Scale::Percent => " %",
        Scale::Times => "x",
        Scale::Plain => "",
    };
    let one = |value: f64| format!("{}{unit}", figure(value));
    let published = match claim.published {
        Some([low, high]) if low != high => format!("{} to {}{unit}", figure(low), figure(high)),
        published => published.map_or_else(|| "-".to_string(), |[both, _]| one(both)),
    };
    let null = match cell.role {
        // The cell is implied: the formula gives nearly the figure of the cell (within a
        // twentieth), so there is no need to show the formula's number.
        Role::Implied => "the formula's".to_string(),
        _ => one(claim.null_model),
    };
    let score = claim.score().map_or_else(|| "-".to_string(), |score| format!("{score:.2}"));
    Some([one(claim.effect), published, null, band(claim.band), score])
}

fn band(band: Band) -> String {
    match band {
        Band(Some(low), Some(high)) if low == high => low.to_string(),
        Band(Some(low), Some(high)) => format!("{} to {}", figure(low), figure(high)),
        Band(Some(low), None) => format!(">= {low}"),
        Band(None, Some(high)) => format!("<= {high}"),
        Band(None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_contain_their_ends() {
        assert!(Band::between(1.0, 2.0).contains(1.0) && Band::between(1.0, 2.0).contains(2.0));
        assert!(!Band::between(1.0, 2.0).contains(2.01) && !Band::between(1.0, 2.0).contains(0.99));
        assert!(Band::at_least(2.0).contains(1e30) && !Band::at_least(2.0).contains(1.9));
        assert!(Band::at_most(2.0).contains(-1e30) && !Band::at_most(2.0).contains(2.1));
        assert_eq!(Band::around(200.0, 15.0), Band::between(170.0, 230.0));
        assert_eq!(Band::times(-10.0, 2.0), Band::between(-20.0, -5.0));
        assert!(!Band::at_most(2.0).contains(f64::NAN) && !Band::at_least(2.0).contains(f64::NAN));
        let json = serde_json::to_string(&Band::at_least(2.0)).unwrap();
        assert_eq!(json, "[2.0,null]");
    }

    fn cell(value: f64) -> Cell {
        Cell::predicted("a", "us", value)
    }

    /// Goal: a claim is right if its effect lies inside its band, and wrong if the effect lies
    /// outside. A claim has no verdict if the null model lies inside the band too.
    #[test]
    fn only_what_can_fail_has_a_verdict() {
        let claim = |after| Claim::change(100.0, after, Band::between(20.0, 40.0));
        assert_eq!(cell(130.0).claims(claim(130.0)).inside, Some(true));
        assert_eq!(cell(110.0).claims(claim(110.0)).inside, Some(false));
        let stays = Claim::change(100.0, 101.0, Band::between(-5.0, 5.0));
        assert_eq!(cell(101.0).claims(stays).inside, None);
        let broken = Claim::times_less(0.0, 0.0, Band::times(4.0, 2.0));
        assert_eq!(cell(0.0).claims(broken).inside, Some(false), "not a number is not inside");
    }

    /// Goal: the score is 1 between the least and the greatest published run, and 0 at the null
    /// model. In between, distances are measured on the scale of the effect.
    #[test]
    fn scores_go_from_the_null_model_to_what_was_published() {
        let band = Band::between(20.0, 40.0);
        let score = |after| Claim::change(100.0, after, band).published(30.0, 35.0).score();
        let near = |score: Option<f64>, to: f64| assert!((score.unwrap() - to).abs() < 1e-9);
        near(score(132.0), 1.0);
        near(score(100.0), 0.0);
        near(score(115.0), 0.5);
        near(score(90.0), -1.0 / 3.0);
        let times = Claim::times_less(10.0, 1.0, Band::times(100.0, 2.0)).published(100.0, 100.0);
        near(times.score(), 0.5);
        assert_eq!(Claim::value(1.0, 0.0, band).score(), None, "nothing was published");
    }

    #[test]
    fn formulas_imply() {
        let claim = Claim::change(100.0, 130.0, Band::between(20.0, 40.0)).published(30.0, 35.0);
        let implied = cell(130.0).claims(claim).beside_formula(128.0);
        assert_eq!((implied.role, implied.inside), (Role::Implied, None));
        let wrong = Claim::change(100.0, 110.0, claim.band);
        assert_eq!(cell(110.0).claims(wrong).beside_formula(110.0).inside, Some(false));
        assert_eq!(implied.compared.null_model(), Some(128.0));
        let predicted = cell(130.0).claims(claim).beside_formula(120.0);
        assert_eq!((predicted.role, predicted.inside), (Role::Predicted, Some(true)));
    }
}
