//! Pictures as SVG in pixels: their texts and marks, and the legend. Colours are variables of the
//! style sheet, which differ between light and dark themes.

use crate::studies::World;
use crate::studies::plot::Side;
use maud::{Markup, html};

pub const WIDTH: i32 = 560;
const LETTER: i32 = 7;

/// Returns a picture, from the line `top` down. The page that contains it sets its size. Screen
/// readers read its title out.
pub fn picture((top, below): (i32, i32), title: &str, content: &Markup) -> String {
    let svg = html! {
        svg role="img" aria-label=(title) viewBox={ "0 " (top) " " (WIDTH) " " (below - top) }
            font-family="sans-serif" font-size="12" fill=(INK) { (content) }
    };
    svg.into_string()
}

/// Which part of a text is placed at the given point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Left,
    Middle,
    Right,
}

pub fn text(what: &str, (x, y): (i32, i32), anchor: Anchor) -> Markup {
    let anchor = match anchor {
        Anchor::Left => "start",
        Anchor::Middle => "middle",
        Anchor::Right => "end",
    };
    html! { text x=(x) y=(y) dy="0.35em" text-anchor=(anchor) { (what) } }
}

pub fn block([from, to]: [(i32, i32); 2], colour: &str, opacity: f64) -> Markup {
    let (width, height) = (to.0 - from.0, to.1 - from.1);
    html! {
        rect x=(from.0) y=(from.1) width=(width) height=(height) fill=(colour) opacity=(opacity) {}
    }
}

pub fn line([from, to]: [(i32, i32); 2], colour: &str) -> Markup {
    html! { line x1=(from.0) y1=(from.1) x2=(to.0) y2=(to.1) stroke=(colour) {} }
}

/// Draws the mark of a figure: a disc if it is simulated, a square if it was measured live.
pub fn mark(world: World, (x, y): (i32, i32), colour: &str) -> Markup {
    match world {
        World::Sim => html! { circle cx=(x) cy=(y) r="4" fill=(colour) {} },
        World::Live => block([(x - 4, y - 4), (x + 4, y + 4)], colour, 1.0),
    }
}

/// Draws the mark of a published figure: a hollow diamond.
pub fn diamond((x, y): (i32, i32), colour: &str) -> Markup {
    let path = format!("M{} {y}l7 7 7-7-7-7z", x - 7);
    html! { path d=(path) fill="none" stroke=(colour) stroke-width="2" {} }
}

/// The patterns of lines that share a colour: [`Series::pattern`](crate::studies::plot::Series).
pub const PATTERNS: [Option<&str>; 3] = [None, Some("2 3"), Some("9 3 2 3")];

#[derive(Default)]
pub struct Legend {
    /// The name of each variant, its colour, and the pattern of its line.
    ways: Vec<(String, Side, usize)>,
    pub worlds: Vec<World>,
    pub has_published: bool,
}

impl Legend {
    /// Makes a legend of the lines' names, each once, and of the kinds of results: simulated, live.
    pub fn new(ways: impl Iterator<Item = (String, Side, usize)>, worlds: Vec<World>) -> Legend {
        let mut legend = Legend { worlds, ..Legend::default() };
        for (name, side, pattern) in ways {
            if !legend.ways.iter().any(|(known, ..)| *known == name) {
                legend.ways.push((name, side, pattern));
            }
        }
        legend
    }

    /// The height of the last row. Other rows are above it.
    pub const HEIGHT: i32 = 30;

    /// Draws the legend from this x coordinate on, in as many rows as it takes. Returns the y
    /// coordinate at which it begins: 0, or less with several rows.
    pub fn draw(&self, from: i32) -> (i32, Markup) {
        const ROW: i32 = 18;
        let (mut x, mut y) = (from, 14);
        let mut entries = Vec::new();
        let mut add = |name: &str, symbol: &dyn Fn((i32, i32)) -> Markup| {
            let width = 36 + LETTER * name.chars().count() as i32;
            if x > from && x + width > WIDTH {
                (x, y) = (from, y + ROW);
            }
            entries.push(html! { (symbol((x + 6, y))) (text(name, (x + 18, y), Anchor::Left)) });
            x += width;
        };
        for &(ref name, side, pattern) in &self.ways {
            add(name, &|(x, y)| match PATTERNS[pattern % PATTERNS.len()] {
                None => block([(x - 6, y - 5), (x + 6, y + 5)], colour(side), 1.0),
                dashes => html! {
                    polyline points={ (x - 8) "," (y) " " (x + 8) "," (y) } fill="none"
                        stroke=(colour(side)) stroke-width="3" stroke-dasharray=[dashes] {}
                },
            });
        }
        self.worlds.iter().for_each(|&world| add(world.label(), &|at| mark(world, at, INK)));
        if self.has_published {
            add("published", &|at| diamond(at, INK));
        }
        let top = 14 - y;
        let up = format!("translate(0 {top})");
        (top, html! { g transform=(up) { @for entry in entries { (entry) } } })
    }
}

pub const INK: &str = "var(--ink)";
pub const FAINT: &str = "var(--line)";

/// Returns the colour of a line or bar: without the mechanism, with it, or for comparison.
pub const fn colour(side: Side) -> &'static str {
    match side {
        Side::Before => "var(--before)",
        Side::After => "var(--after)",
        Side::Beside => "var(--beside)",
    }
}

/// The style sheet that defines the colours, for paper and for a dark screen. Blue and vermilion
/// can be told apart with every kind of colour vision (Okabe and Ito, 2002), and each has enough
/// contrast with its background.
pub const STYLE: &str = include_str!("../colours.css");
