//! Colours that a style sheet chooses.
//!
//! The plotting crate only knows fixed colours. So each use of colour, such as axes, has a fixed
//! colour that is used for nothing else. In the finished picture, each fixed colour is replaced by
//! a variable of the style sheet.

use crate::studies::plot::Side;
use plotters::style::RGBColor;

/// Axes and texts.
pub const INK: RGBColor = RGBColor(1, 0, 0);
/// Lines of the grid.
pub const FAINT: RGBColor = RGBColor(1, 0, 1);
/// The background.
pub const PAPER: RGBColor = RGBColor(1, 0, 2);

const BEFORE: RGBColor = RGBColor(1, 0, 3);
const AFTER: RGBColor = RGBColor(1, 0, 4);
const BESIDE: RGBColor = RGBColor(1, 0, 5);

const VARIABLES: [(RGBColor, &str); 6] = [
    (INK, "ink"),
    (FAINT, "line"),
    (PAPER, "paper"),
    (BEFORE, "before"),
    (AFTER, "after"),
    (BESIDE, "beside"),
];

pub const fn of(side: Side) -> RGBColor {
    match side {
        Side::Before => BEFORE,
        Side::After => AFTER,
        Side::Beside => BESIDE,
    }
}

pub fn themed(svg: &str) -> String {
    VARIABLES.iter().fold(svg.to_string(), |svg, (RGBColor(red, green, blue), name)| {
        svg.replace(&format!("#{red:02X}{green:02X}{blue:02X}"), &format!("var(--{name})"))
    })
}

/// The style sheet that defines the variables, for paper and for a dark screen. Blue and vermilion
/// can be told apart with every kind of colour vision (Okabe and Ito, 2002), and each has enough
/// contrast with its background.
pub const STYLE: &str = include_str!("../colours.css");
