//! Colours that a style sheet chooses.
//!
//! The plotting crate knows red, green and blue. So each role has a colour that nothing else
//! has, and in the finished picture that is replaced by the style sheet's variable.

use crate::studies::plot::Side;
use plotters::style::RGBColor;

/// Axes and texts.
pub const INK: RGBColor = RGBColor(1, 0, 0);
/// Lines of the grid.
pub const FAINT: RGBColor = RGBColor(1, 0, 1);
/// What is under everything.
pub const PAPER: RGBColor = RGBColor(1, 0, 2);

const BEFORE: RGBColor = RGBColor(1, 0, 3);
const AFTER: RGBColor = RGBColor(1, 0, 4);
const BESIDE: RGBColor = RGBColor(1, 0, 5);

/// Each colour's variable.
const VARIABLES: [(RGBColor, &str); 6] = [
    (INK, "ink"),
    (FAINT, "line"),
    (PAPER, "paper"),
    (BEFORE, "before"),
    (AFTER, "after"),
    (BESIDE, "beside"),
];

/// The colour of a side of the switch.
pub const fn of(side: Side) -> RGBColor {
    match side {
        Side::Before => BEFORE,
        Side::After => AFTER,
        Side::Beside => BESIDE,
    }
}

/// With variables for colours.
pub fn themed(svg: &str) -> String {
    VARIABLES.iter().fold(svg.to_string(), |svg, (RGBColor(red, green, blue), name)| {
        svg.replace(&format!("#{red:02X}{green:02X}{blue:02X}"), &format!("var(--{name})"))
    })
}

/// What the variables are, on paper and on a dark screen. Blue and vermilion differ for
/// every kind of colour vision (Okabe and Ito, 2002), and each has enough contrast with its
/// background.
pub const STYLE: &str = include_str!("../colours.css");
