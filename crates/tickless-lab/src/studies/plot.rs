//! Plots as data, for a terminal, JSON and the report's page.
//!
//! A plot belongs to a simulated or a live study. If both studies have a plot with the same name,
//! the page draws the two plots on the same axes.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Plot {
    pub id: &'static str,
    pub title: String,
    #[serde(flatten)]
    pub shape: Shape,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "form", rename_all = "lowercase")]
pub enum Shape {
    Curve { x: Axis, y: Axis, lines: Vec<Line> },
    Bars { unit: &'static str, bars: Vec<Bar> },
}

#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    pub label: String,
    pub scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Linear,
    Log,
}

/// Whether a variant runs without the study's mechanism (before) or with it (after). This
/// determines the variant's colour in all plots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Before,
    After,
    /// A third variant, shown for comparison with the replaced behaviour and the mechanism.
    Beside,
}

#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub name: String,
    pub side: Side,
    /// The results as pairs of x and y, by increasing x.
    pub points: Vec<[f64; 2]>,
    /// The published figures, from other machines.
    pub published: Vec<[f64; 2]>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    pub name: String,
    pub side: Side,
    pub value: f64,
}

impl Axis {
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log }
    }
}

impl Line {
    pub fn new(name: impl Into<String>, side: Side, points: Vec<[f64; 2]>) -> Line {
        Line { name: name.into(), side, points, published: Vec::new() }
    }
}

impl Plot {
    pub fn new(id: &'static str, title: impl Into<String>, shape: Shape) -> Plot {
        Plot { id, title: title.into(), shape }
    }
}
