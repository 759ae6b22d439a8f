//! Draws the plots that consist of rectangles: bars, histograms, and strips, which show when groups
//! of tasks run within a period.

use super::Part;
use super::canvas::{
    Anchor, Area, FAINT, INK, Legend, WIDTH, block, colour, line, mark, picture, text,
};
use crate::studies::World;
use crate::studies::plot::{Bar, Counts, Lane, Shape};
use crate::text::figure;
use plotters::prelude::*;
use std::io;

/// The x coordinate at which the names end and the bars begin.
const LEFT: i32 = 150;
const RIGHT: i32 = WIDTH - 14;

/// Draws horizontal bars: those of the simulated study, and below them those of the live study,
/// which was measured on this machine.
pub fn bars(parts: &[Part<'_>]) -> io::Result<String> {
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

/// Draws a histogram with vertical bars. Each bin has one bar for each variant, side by side. A bar
/// shows which percentage of its variant's total is in the bin.
pub fn histogram(parts: &[Part<'_>]) -> io::Result<String> {
    let Some((world, plot)) = parts.last() else { return Ok(String::new()) };
    let Shape::Histogram { unit, ends, ways } = &plot.shape else { return Ok(String::new()) };
    let names = ways.iter().map(|way| (way.name.clone(), way.side));
    let legend = Legend::new(names, vec![*world]);
    let is_used = |&bin: &usize| ways.iter().any(|way| way.counts.get(bin) > Some(&0));
    let used: Vec<usize> = (0..=ends.len()).filter(is_used).collect();
    let (first, last) = (used.first().copied().unwrap_or(0), used.last().copied().unwrap_or(0));
    let shares: Vec<Vec<f64>> = ways.iter().map(shares).collect();
    let most = shares.iter().flatten().copied().fold(1.0, f64::max);
    const HEIGHT: i32 = 280;
    const BELOW: i32 = HEIGHT - 48;
    const SIDE: i32 = 62;
    picture(HEIGHT, |area| {
        legend.draw(area, SIDE)?;
        let y = |percent: f64| {
            let room = f64::from(BELOW - Legend::HEIGHT - 8);
            BELOW - (percent / most * room) as i32
        };
        grid(area, SIDE, most, &y)?;
        let width = (RIGHT - SIDE) / (last - first + 1) as i32;
        for bin in first..=last {
            let left = SIDE + width * (bin - first) as i32;
            let each = (width - 6).max(2) / ways.len().max(1) as i32;
            for (at, (way, shares)) in ways.iter().zip(&shares).enumerate() {
                let from = left + 3 + each * at as i32;
                let share = shares.get(bin).copied().unwrap_or(0.0);
                // A bar that is not empty has at least two pixels, so that rare events are visible.
                let top = if share > 0.0 { y(share).min(BELOW - 2) } else { BELOW };
                let column = [(from, top), (from + each - 1, BELOW)];
                block(area, column, colour(way.side).into())?;
            }
            let label = ends.get(bin).map_or("more".to_string(), |end| tick(*end));
            text(area, &label, (left + width / 2, BELOW + 12), Anchor::Middle)?;
        }
        line(area, [(SIDE, BELOW), (RIGHT, BELOW)], INK.into())?;
        let below = format!("late by at most so many {unit}");
        text(area, &below, ((SIDE + RIGHT) / 2, BELOW + 34), Anchor::Middle)?;
        text(area, "%", (SIDE - 44, Legend::HEIGHT + 8), Anchor::Left)
    })
}

fn shares(way: &Counts) -> Vec<f64> {
    let all = way.counts.iter().sum::<u64>().max(1) as f64;
    way.counts.iter().map(|&count| 100.0 * count as f64 / all).collect()
}

/// Draws horizontal lines at round percentages up to `most`, with their labels.
fn grid(area: &Area<'_>, side: i32, most: f64, y: &dyn Fn(f64) -> i32) -> io::Result<()> {
    let step = [1.0, 2.0, 5.0, 10.0, 20.0].into_iter().find(|step| most / step <= 6.0);
    let step = step.unwrap_or(25.0);
    let mut percent = 0.0;
    while percent <= most {
        line(area, [(side, y(percent)), (RIGHT, y(percent))], FAINT.into())?;
        text(area, &figure(percent), (side - 8, y(percent)), Anchor::Right)?;
        percent += step;
    }
    Ok(())
}

fn tick(us: f64) -> String {
    match us {
        1e6.. => format!("{}s", figure(us / 1e6)),
        1e3.. => format!("{}k", figure(us / 1e3)),
        _ => figure(us),
    }
}

/// Draws a row for each group of tasks, which shows one period from left to right. It is darker
/// where the group runs in more periods. A line marks when the group's CPU quota is refilled.
pub fn strip(parts: &[Part<'_>]) -> io::Result<String> {
    const ROW: i32 = 24;
    let Some((_, plot)) = parts.first() else { return Ok(String::new()) };
    let Shape::Strip { period_ms, .. } = &plot.shape else { return Ok(String::new()) };
    let of = |&(world, plot): &Part<'_>| match &plot.shape {
        Shape::Strip { lanes, .. } => lanes.iter().map(|lane| (world, lane.clone())).collect(),
        _ => Vec::new(),
    };
    let lanes: Vec<(World, Lane)> = parts.iter().flat_map(of).collect();
    let legend = Legend::new([].into_iter(), worlds(parts));
    let below = Legend::HEIGHT + ROW * lanes.len() as i32;
    let x = |ms: f64| LEFT + (ms / period_ms * f64::from(RIGHT - LEFT)) as i32;
    picture(below + 46, |area| {
        legend.draw(area, LEFT)?;
        for quarter in 0..=4 {
            let ms = period_ms * f64::from(quarter) / 4.0;
            line(area, [(x(ms), Legend::HEIGHT), (x(ms), below)], FAINT.into())?;
            text(area, &figure(ms), (x(ms), below + 12), Anchor::Middle)?;
        }
        for (row, (world, lane)) in lanes.iter().enumerate() {
            let middle = Legend::HEIGHT + ROW * row as i32 + ROW / 2;
            text(area, &lane.name, (LEFT - 26, middle), Anchor::Right)?;
            mark(area, *world, (LEFT - 13, middle), colour(lane.side))?;
            runs(area, lane, middle, *period_ms, &x)?;
        }
        let label = "ms of a period; the line is the refill, colour is running";
        text(area, label, ((LEFT + RIGHT) / 2, below + 34), Anchor::Middle)
    })
}

/// Draws one lane: darker where its group runs in more periods, and a line at its refill.
fn runs(
    area: &Area<'_>,
    lane: &Lane,
    middle: i32,
    period_ms: f64,
    x: &dyn Fn(f64) -> i32,
) -> io::Result<()> {
    let part_ms = period_ms / lane.runs.len().max(1) as f64;
    for (part, &share) in lane.runs.iter().enumerate() {
        let from = x(part_ms * part as f64);
        let to = x(part_ms * (part + 1) as f64);
        let colour = colour(lane.side).mix(share.clamp(0.0, 1.0));
        block(area, [(from, middle - 9), (to, middle + 9)], colour)?;
    }
    let at = x(lane.refill_ms);
    block(area, [(at, middle - 12), (at + 2, middle + 12)], INK.into())
}
