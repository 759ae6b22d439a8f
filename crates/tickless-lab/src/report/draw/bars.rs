//! Draws bars.

use super::Part;
use super::canvas::{Anchor, INK, Legend, WIDTH, block, colour, line, mark, picture, text};
use crate::studies::World;
use crate::studies::plot::{Bar, Shape};
use crate::text::figure;
use std::io;

/// The x coordinate at which the names end and the bars begin.
const LEFT: i32 = 150;
const RIGHT: i32 = WIDTH - 14;

/// Draws horizontal bars: those of the simulated study, and below them those of the live study,
/// which was measured on this machine.
pub fn draw(parts: &[Part<'_>]) -> io::Result<String> {
    const ROW: i32 = 26;
    const VALUE: i32 = 62;
    let rows: Vec<(World, &Bar, &str)> = parts
        .iter()
        .flat_map(|&(world, plot)| match &plot.shape {
            Shape::Bars { unit, bars } => bars.iter().map(|bar| (world, bar, *unit)).collect(),
            _ => Vec::new(),
        })
        .collect();
    let most = rows.iter().map(|(_, bar, _)| bar.value).filter(|value| value.is_finite());
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let legend = Legend::new([].into_iter(), worlds(parts));
    let height = Legend::HEIGHT + ROW * rows.len() as i32 + 26;
    picture(height, |area| {
        legend.draw(area, LEFT)?;
        for (row, (world, bar, _)) in rows.iter().enumerate() {
            let middle = Legend::HEIGHT + ROW * row as i32 + ROW / 2;
            let room = f64::from(RIGHT - VALUE - LEFT);
            let length = (bar.value.max(0.0) / most * room) as i32;
            text(area, &bar.name, (LEFT - 26, middle), Anchor::Right)?;
            mark(area, *world, (LEFT - 13, middle), colour(bar.side))?;
            let filled = [(LEFT, middle - 8), (LEFT + length.max(1), middle + 8)];
            block(area, filled, colour(bar.side).into())?;
            text(area, &figure(bar.value), (LEFT + length + 8, middle), Anchor::Left)?;
        }
        let unit = rows.first().map_or("", |row| row.2);
        let below = Legend::HEIGHT + ROW * rows.len() as i32;
        line(area, [(LEFT, Legend::HEIGHT), (LEFT, below)], INK.into())?;
        text(area, unit, (LEFT, below + 14), Anchor::Left)
    })
}

fn worlds(parts: &[Part<'_>]) -> Vec<World> {
    parts.iter().map(|(world, _)| *world).collect()
}
