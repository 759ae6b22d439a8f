//! A drawing area in pixels, its texts and its legend.

use crate::studies::World;
use crate::studies::plot::Side;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;

pub const WIDTH: i32 = 560;
/// The font size. A telephone shows the picture at two thirds of its size.
pub const TEXT: i32 = 14;
const LETTER: i32 = 7;

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub fn picture(height: i32, draw: impl FnOnce(&Area<'_>) -> io::Result<()>) -> io::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32));
        let area = area.into_drawing_area();
        draw(&area)?;
        area.present().map_err(io::Error::other)?;
    }
    Ok(svg)
}

/// Which part of a text is placed at the given point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Left,
    Middle,
    Right,
}

pub fn text(area: &Area<'_>, what: &str, at: (i32, i32), anchor: Anchor) -> io::Result<()> {
    let place = match anchor {
        Anchor::Left => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::Right => HPos::Right,
    };
    let style = TextStyle::from(("sans-serif", TEXT).into_font())
        .color(&INK)
        .pos(Pos::new(place, VPos::Center));
    area.draw(&Text::new(what.to_string(), at, style)).map_err(io::Error::other)
}

pub fn block(area: &Area<'_>, [from, to]: [(i32, i32); 2], colour: RGBAColor) -> io::Result<()> {
    area.draw(&Rectangle::new([from, to], colour.filled())).map_err(io::Error::other)
}

pub fn line(area: &Area<'_>, ends: [(i32, i32); 2], colour: RGBAColor) -> io::Result<()> {
    area.draw(&PathElement::new(ends.to_vec(), colour.stroke_width(1))).map_err(io::Error::other)
}

/// Draws the mark of a figure: a disc if it is simulated, a square if it was measured live.
pub fn mark(area: &Area<'_>, world: World, (x, y): (i32, i32), colour: RGBColor) -> io::Result<()> {
    match world {
        World::Sim => area.draw(&Circle::new((x, y), 4, colour.filled())),
        World::Live => {
            area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], colour.filled()))
        }
    }
    .map_err(io::Error::other)
}

/// Draws the mark of a published figure: a hollow diamond.
pub fn diamond(area: &Area<'_>, (x, y): (i32, i32), colour: RGBColor) -> io::Result<()> {
    let path = vec![(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y), (x, y - 7)];
    area.draw(&PathElement::new(path, colour.stroke_width(2))).map_err(io::Error::other)
}

pub struct Legend {
    pub ways: Vec<(String, Side)>,
    pub worlds: Vec<World>,
    pub has_published: bool,
}

impl Legend {
    /// Makes a legend of differently named lines, and of the kinds of results: simulated, live.
    pub fn new(ways: impl Iterator<Item = (String, Side)>, worlds: Vec<World>) -> Legend {
        let mut legend = Legend { ways: Vec::new(), worlds, has_published: false };
        for (name, side) in ways {
            if !legend.ways.iter().any(|(known, _)| *known == name) {
                legend.ways.push((name, side));
            }
        }
        legend
    }

    pub const HEIGHT: i32 = 30;

    pub fn draw(&self, area: &Area<'_>, from: i32) -> io::Result<()> {
        const Y: i32 = 14;
        let mut x = from;
        for (name, side) in &self.ways {
            block(area, [(x, Y - 5), (x + 18, Y + 5)], colour(*side).into())?;
            text(area, name, (x + 24, Y), Anchor::Left)?;
            x += 24 + LETTER * name.chars().count() as i32 + 18;
        }
        for world in &self.worlds {
            mark(area, *world, (x + 4, Y), INK)?;
            x = word(area, world_name(*world), x, Y)?;
        }
        if self.has_published {
            diamond(area, (x + 4, Y), INK)?;
            word(area, "published", x, Y)?;
        }
        Ok(())
    }
}

fn word(area: &Area<'_>, what: &str, x: i32, y: i32) -> io::Result<i32> {
    text(area, what, (x + 16, y), Anchor::Left)?;
    Ok(x + 16 + LETTER * what.chars().count() as i32 + 18)
}

pub fn world_name(world: World) -> &'static str {
    match world {
        World::Sim => "simulated",
        World::Live => "live",
    }
}

pub const INK: RGBColor = RGBColor(1, 0, 0);
pub const FAINT: RGBColor = RGBColor(1, 0, 1);
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

/// Returns the colour of a line or bar: without the mechanism, with it, or for comparison.
pub const fn colour(side: Side) -> RGBColor {
    match side {
        Side::Before => BEFORE,
        Side::After => AFTER,
        Side::Beside => BESIDE,
    }
}

/// Replaces colours by CSS variables, which differ between light and dark themes.
pub fn themed(svg: &str) -> String {
    VARIABLES.iter().fold(svg.to_string(), |svg, (RGBColor(red, green, blue), name)| {
        svg.replace(&format!("#{red:02X}{green:02X}{blue:02X}"), &format!("var(--{name})"))
    })
}

/// The style sheet that defines the variables, for paper and for a dark screen. Blue and vermilion
/// can be told apart with every kind of colour vision (Okabe and Ito, 2002), and each has enough
/// contrast with its background.
pub const STYLE: &str = include_str!("../colours.css");
