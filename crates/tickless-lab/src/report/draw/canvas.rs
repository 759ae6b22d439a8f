//! A drawing area in pixels, its texts and its legend.

use super::colour::{self, INK};
use crate::studies::World;
use crate::studies::plot::Side;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;

/// How wide every picture is.
pub const WIDTH: i32 = 560;
/// The size of texts, which a telephone shows at two thirds.
pub const TEXT: i32 = 14;
/// Roughly how wide a letter is.
const LETTER: i32 = 7;

/// A picture to draw in.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws a picture of this height.
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

/// Where a text stands beside its point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The point is at its left end.
    Left,
    /// The point is in its middle.
    Middle,
    /// The point is at its right end.
    Right,
}

/// A text, vertically in the middle of its point.
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

/// A filled rectangle.
pub fn block(area: &Area<'_>, [from, to]: [(i32, i32); 2], colour: RGBAColor) -> io::Result<()> {
    area.draw(&Rectangle::new([from, to], colour.filled())).map_err(io::Error::other)
}

/// A straight line.
pub fn line(area: &Area<'_>, ends: [(i32, i32); 2], colour: RGBAColor) -> io::Result<()> {
    area.draw(&PathElement::new(ends.to_vec(), colour.stroke_width(1))).map_err(io::Error::other)
}

/// The mark of a simulated or live figure.
pub fn mark(area: &Area<'_>, world: World, (x, y): (i32, i32), colour: RGBColor) -> io::Result<()> {
    match world {
        World::Sim => area.draw(&Circle::new((x, y), 4, colour.filled())),
        World::Live => {
            area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], colour.filled()))
        }
    }
    .map_err(io::Error::other)
}

/// The mark of a published figure.
pub fn diamond(area: &Area<'_>, (x, y): (i32, i32), colour: RGBColor) -> io::Result<()> {
    let path = vec![(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y), (x, y - 7)];
    area.draw(&PathElement::new(path, colour.stroke_width(2))).map_err(io::Error::other)
}

/// What stands above a picture: ways with their colours, then marks with where figures come
/// from.
pub struct Legend {
    /// The ways.
    pub ways: Vec<(String, Side)>,
    /// Whose figures are shown.
    pub worlds: Vec<World>,
    /// Whether published figures are shown.
    pub has_published: bool,
}

impl Legend {
    /// Of these ways, each once.
    pub fn new(ways: impl Iterator<Item = (String, Side)>, worlds: Vec<World>) -> Legend {
        let mut legend = Legend { ways: Vec::new(), worlds, has_published: false };
        for (name, side) in ways {
            if !legend.ways.iter().any(|(known, _)| *known == name) {
                legend.ways.push((name, side));
            }
        }
        legend
    }

    /// How many pixels it takes at the top.
    pub const HEIGHT: i32 = 30;

    /// Draws it, from this pixel on.
    pub fn draw(&self, area: &Area<'_>, from: i32) -> io::Result<()> {
        const Y: i32 = 14;
        let mut x = from;
        for (name, side) in &self.ways {
            block(area, [(x, Y - 5), (x + 18, Y + 5)], colour::of(*side).into())?;
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

/// A word of the legend behind its mark; where the next one begins.
fn word(area: &Area<'_>, what: &str, x: i32, y: i32) -> io::Result<i32> {
    text(area, what, (x + 16, y), Anchor::Left)?;
    Ok(x + 16 + LETTER * what.chars().count() as i32 + 18)
}

/// What a world is called in a picture.
pub fn world_name(world: World) -> &'static str {
    match world {
        World::Sim => "simulated",
        World::Live => "live",
    }
}
