//! Draws the plots that consist of rectangles: bars, histograms, and strips, which show when groups
//! of tasks run within a period.

use super::Part;
use super::canvas::{Anchor, FAINT, INK, Legend, WIDTH, block, colour, line, mark, text};
use super::curve::multiples;
use crate::studies::World;
use crate::studies::plot::{Bar, Counts, Lane, Shape, Side};
use crate::text::figure;
use maud::{Markup, html};

/// The x coordinate at which the names end and the bars begin.
const LEFT: i32 = 150;
const RIGHT: i32 = WIDTH - 14;

/// Draws horizontal bars: those of the simulated study, and below them those of the live study,
/// which was measured on this machine.
pub fn bars(parts: &[Part<'_>]) -> ((i32, i32), Markup) {
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
    let length = |bar: &Bar| (bar.value.max(0.0) / most * f64::from(RIGHT - VALUE - LEFT)) as i32;
    let below = Legend::HEIGHT + ROW * rows.len() as i32;
    let unit = rows.first().map_or("", |row| row.2);
    let content = html! {
        (legend(parts))
        @for (&(world, bar, _), middle) in rows.iter().zip(middles(ROW)) {
            @let end = LEFT + length(bar);
            (name(world, &bar.name, bar.side, middle))
            (block([(LEFT, middle - 8), (end.max(LEFT + 1), middle + 8)], colour(bar.side), 1.0))
            (text(&figure(bar.value), (end + 8, middle), Anchor::Left))
        }
        (line([(LEFT, Legend::HEIGHT), (LEFT, below)], INK))
        (text(unit, (LEFT, below + 14), Anchor::Left))
    };
    ((0, below + 26), content)
}

fn legend(parts: &[Part<'_>]) -> Markup {
    Legend::new([].into_iter(), parts.iter().map(|(world, _)| *world).collect()).draw(LEFT).1
}

fn middles(height: i32) -> impl Iterator<Item = i32> {
    (0..).map(move |row| Legend::HEIGHT + height * row + height / 2)
}

fn name(world: World, name: &str, side: Side, middle: i32) -> Markup {
    html! {
        (text(name, (LEFT - 26, middle), Anchor::Right))
        (mark(world, (LEFT - 13, middle), colour(side)))
    }
}

/// Draws a histogram with vertical bars. Each bin has one bar for each variant, side by side. A bar
/// shows which percentage of its variant's total is in the bin.
pub fn histogram(parts: &[Part<'_>]) -> ((i32, i32), Markup) {
    const HEIGHT: i32 = 280;
    const BELOW: i32 = HEIGHT - 48;
    const SIDE: i32 = 62;
    let Some((world, plot)) = parts.last() else { return ((0, 0), html! {}) };
    let Shape::Histogram { unit, ends, ways } = &plot.shape else { return ((0, 0), html! {}) };
    let names = ways.iter().map(|way| (way.name.clone(), way.side, 0));
    let (top, legend) = Legend::new(names, vec![*world]).draw(SIDE);
    let is_used = |&bin: &usize| ways.iter().any(|way| way.counts.get(bin) > Some(&0));
    let used: Vec<usize> = (0..=ends.len()).filter(is_used).collect();
    let (first, last) = (used.first().copied().unwrap_or(0), used.last().copied().unwrap_or(0));
    let shares: Vec<Vec<f64>> = ways.iter().map(shares).collect();
    let most = shares.iter().flatten().copied().fold(1.0, f64::max);
    let y = |percent: f64| BELOW - (percent / most * f64::from(BELOW - Legend::HEIGHT - 8)) as i32;
    let width = (RIGHT - SIDE) / (last - first + 1) as i32;
    let each = (width - 6).max(2) / ways.len().max(1) as i32;
    let column = |left: i32, share: f64, side| {
        // A bar that is not empty has at least two pixels, so that rare events are visible.
        let top = if share > 0.0 { y(share).min(BELOW - 2) } else { BELOW };
        block([(left, top), (left + each - 1, BELOW)], colour(side), 1.0)
    };
    let content = html! {
        (legend)
        @for percent in multiples(most, 7) {
            (line([(SIDE, y(percent)), (RIGHT, y(percent))], FAINT))
            (text(&figure(percent), (SIDE - 8, y(percent)), Anchor::Right))
        }
        @for (bin, left) in (first..=last).zip((SIDE..).step_by(width as usize)) {
            @for ((way, shares), at) in ways.iter().zip(&shares).zip(0..) {
                (column(left + 3 + each * at, shares.get(bin).copied().unwrap_or(0.0), way.side))
            }
            @let label = ends.get(bin).map_or("more".to_string(), |end| tick(*end));
            (text(&label, (left + width / 2, BELOW + 12), Anchor::Middle))
        }
        (line([(SIDE, BELOW), (RIGHT, BELOW)], INK))
        @let below = format!("late by at most so many {unit}");
        (text(&below, ((SIDE + RIGHT) / 2, BELOW + 34), Anchor::Middle))
        (text("%", (SIDE - 44, Legend::HEIGHT + 8), Anchor::Left))
    };
    ((top, HEIGHT), content)
}

fn shares(way: &Counts) -> Vec<f64> {
    let all = way.counts.iter().sum::<u64>().max(1) as f64;
    way.counts.iter().map(|&count| 100.0 * count as f64 / all).collect()
}

fn tick(us: f64) -> String {
    match us {
        1e6.. => format!("{}s", figure(us / 1e6)),
        1e3.. => format!("{}k", figure(us / 1e3)),
        _ => figure(us),
    }
}

/// Draws a row for each group of tasks. The row shows one period from left to right, and is darker
/// at times when the group runs in more periods. A line marks the refill of the group's CPU quota.
pub fn strip(parts: &[Part<'_>]) -> ((i32, i32), Markup) {
    const ROW: i32 = 24;
    let Some((_, plot)) = parts.first() else { return ((0, 0), html! {}) };
    let Shape::Strip { period_ms, .. } = &plot.shape else { return ((0, 0), html! {}) };
    let of = |&(world, plot): &Part<'_>| match &plot.shape {
        Shape::Strip { lanes, .. } => lanes.iter().map(|lane| (world, lane.clone())).collect(),
        _ => Vec::new(),
    };
    let lanes: Vec<(World, Lane)> = parts.iter().flat_map(of).collect();
    let below = Legend::HEIGHT + ROW * lanes.len() as i32;
    let x = |ms: f64| LEFT + (ms / period_ms * f64::from(RIGHT - LEFT)) as i32;
    let label = "ms of a period; the line is the refill, colour is running";
    let content = html! {
        (legend(parts))
        @for ms in (0..=4).map(|quarter| period_ms * f64::from(quarter) / 4.0) {
            (line([(x(ms), Legend::HEIGHT), (x(ms), below)], FAINT))
            (text(&figure(ms), (x(ms), below + 12), Anchor::Middle))
        }
        @for ((world, lane), middle) in lanes.iter().zip(middles(ROW)) {
            (name(*world, &lane.name, lane.side, middle))
            @let part_ms = period_ms / lane.runs.len().max(1) as f64;
            @for (part, &share) in lane.runs.iter().enumerate() {
                @let [from, to] = [part, part + 1].map(|part| x(part_ms * part as f64));
                (block([(from, middle - 9), (to, middle + 9)], colour(lane.side), share))
            }
            @let at = x(lane.refill_ms);
            (block([(at, middle - 12), (at + 2, middle + 12)], INK, 1.0))
        }
        (text(label, ((LEFT + RIGHT) / 2, below + 34), Anchor::Middle))
    };
    ((0, below + 46), content)
}
