//! Draws lines over a numeric axis.

use super::Part;
use super::canvas::{
    Anchor, FAINT, INK, Legend, PATTERNS, WIDTH, colour, diamond, line, mark, text,
};
use crate::studies::World;
use crate::studies::plot::{Scale, Series, Shape};
use crate::text::figure;
use maud::{Markup, html};
use std::ops::Range;

const HEIGHT: i32 = 290;
const LEFT: i32 = 64;
const RIGHT: i32 = WIDTH - 14;
const BELOW: i32 = HEIGHT - 48;

/// Draws the lines of the simulated and the live plot on one pair of axes.
pub fn draw(parts: &[Part<'_>]) -> ((i32, i32), Markup) {
    let curves: Vec<(World, &Series)> =
        parts.iter().flat_map(|&(world, plot)| lines(world, &plot.shape)).collect();
    let Some(Shape::Curve { x, y, .. }) = parts.first().map(|(_, plot)| &plot.shape) else {
        return ((0, 0), html! {});
    };
    let ways = curves.iter().map(|(_, line)| (line.name.clone(), line.side, line.pattern));
    let mut legend = Legend::new(ways, parts.iter().map(|(world, _)| *world).collect());
    legend.has_published = curves.iter().any(|(_, line)| !line.published.is_empty());
    let range = |axis: usize, scale| extent(&curves, axis, scale);
    let xs = Axis { scale: x.scale, range: range(0, x.scale), pixels: [LEFT, RIGHT] };
    let ys = Axis { scale: y.scale, range: range(1, y.scale), pixels: [BELOW, Legend::HEIGHT] };
    let (top, legend) = legend.draw(LEFT);
    let content = html! {
        (legend)
        @for (x, label) in xs.ticks(9) {
            (line([(x, Legend::HEIGHT), (x, BELOW)], FAINT))
            (text(&label, (x, BELOW + 14), Anchor::Middle))
        }
        @for (y, label) in ys.ticks(7) {
            (line([(LEFT, y), (RIGHT, y)], FAINT))
            (text(&label, (LEFT - 8, y), Anchor::Right))
        }
        (line([(LEFT, Legend::HEIGHT), (LEFT, BELOW)], INK))
        (line([(LEFT, BELOW), (RIGHT, BELOW)], INK))
        (text(&x.label, ((LEFT + RIGHT) / 2, HEIGHT - 10), Anchor::Middle))
        g transform={ "translate(10 " ((BELOW + Legend::HEIGHT) / 2) ") rotate(-90)" } {
            (text(&y.label, (0, 0), Anchor::Middle))
        }
        @for (world, line) in &curves { (of_line(*world, line, &xs, &ys)) }
    };
    ((top, HEIGHT), content)
}

fn lines(world: World, shape: &Shape) -> impl Iterator<Item = (World, &Series)> {
    let lines = match shape {
        Shape::Curve { lines, .. } => lines.as_slice(),
        _ => &[],
    };
    lines.iter().map(move |line| (world, line))
}

/// Draws a line through its marks: solid for simulated figures, dashed for live ones.
fn of_line(world: World, line: &Series, xs: &Axis, ys: &Axis) -> Markup {
    let is_there = |point: &&[f64; 2]| point.iter().all(|value| value.is_finite());
    let place = |point: &[f64; 2]| (xs.place(point[0]), ys.place(point[1]));
    let points: Vec<_> = line.points.iter().filter(is_there).map(place).collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    let pattern = PATTERNS[line.pattern % PATTERNS.len()];
    let dashes = if world == World::Live { Some("6 4") } else { pattern };
    let colour = colour(line.side);
    html! {
        polyline points=(path.join(" ")) fill="none" stroke=(colour) stroke-width="2"
            stroke-dasharray=[dashes] {}
        @for point in points { (mark(world, point, colour)) }
        @for point in line.published.iter().filter(is_there) { (diamond(place(point), colour)) }
    }
}

/// An axis: the range of values that it shows, and the pixels at which it begins and ends.
struct Axis {
    scale: Scale,
    range: Range<f64>,
    pixels: [i32; 2],
}

impl Axis {
    fn place(&self, value: f64) -> i32 {
        let on_scale = |value: f64| if self.scale == Scale::Log { value.ln() } else { value };
        let [start, end, value] = [self.range.start, self.range.end, value].map(on_scale);
        let [from, to] = self.pixels.map(f64::from);
        (from + (value - start) / (end - start) * (to - from)).round() as i32
    }

    /// Returns at most `most` round values on the axis: the pixel of each, and its label.
    fn ticks(&self, most: usize) -> Vec<(i32, String)> {
        let ticks = match self.scale {
            Scale::Linear => multiples(self.range.end, most),
            Scale::Log => powers(&self.range, most),
        };
        ticks.into_iter().map(|value| (self.place(value), short(value))).collect()
    }
}

/// Returns at most `most` numbers: 0 and the multiples of a round number, up to `end`.
pub fn multiples(end: f64, most: usize) -> Vec<f64> {
    let least = end / (most - 1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|times| times * power).find(|step| *step >= least);
    let step = step.unwrap_or(10.0 * power);
    (0..most).map(|count| count as f64 * step).take_while(|value| *value <= end).collect()
}

/// Returns at most `most` round numbers in a range, such as 1, 2, 5, 10, 20: for a log scale.
fn powers(range: &Range<f64>, most: usize) -> Vec<f64> {
    const FACTORS: [&[i32]; 3] = [&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, 5], &[1]];
    let exponents = range.start.log10().floor() as i32..=range.end.log10() as i32;
    let of = |factors: &[i32]| -> Vec<f64> {
        let values = exponents.clone().flat_map(|exponent| {
            factors.iter().map(move |&factor| f64::from(factor) * 10_f64.powi(exponent))
        });
        values.filter(|value| range.contains(value)).collect()
    };
    FACTORS.into_iter().map(of).find(|values| values.len() <= most).unwrap_or_default()
}

/// Returns the range that an axis must cover: all figures, published ones too, and some space.
fn extent(curves: &[(World, &Series)], axis: usize, scale: Scale) -> Range<f64> {
    let points = curves.iter().flat_map(|(_, line)| line.points.iter().chain(&line.published));
    let is_shown = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
    let values: Vec<f64> = points.map(|point| point[axis]).filter(is_shown).collect();
    let most = values.iter().copied().fold(f64::NAN, f64::max);
    let least = values.iter().copied().fold(f64::NAN, f64::min);
    match scale {
        _ if values.is_empty() => 1.0..10.0,
        // A linear axis begins at 0, because a cut-off axis makes small differences look large.
        Scale::Linear => 0.0..if most > 0.0 { most * 1.08 } else { 1.0 },
        Scale::Log => least / 1.3..most * 1.5,
    }
}

fn short(value: f64) -> String {
    match value.abs() {
        1e6.. => format!("{}M", trimmed(value / 1e6)),
        1e4.. => format!("{}k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = figure(value);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        for (value, want) in
            [(0.0, "0"), (0.5, "0.5"), (512.0, "512"), (29_000.0, "29k"), (3.1e6, "3.1M")]
        {
            assert_eq!(short(value), want);
        }
    }

    #[test]
    fn ticks_are_round_and_not_too_many() {
        assert_eq!(multiples(0.7, 7), [0.0, 0.2, 0.4, 0.6000000000000001]);
        assert_eq!(multiples(37.0, 7), [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(powers(&(1.5..700.0), 9), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(powers(&(0.05..700.0), 9), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(powers(&(23.0..45.0), 9), [30.0, 40.0]);
    }
}
