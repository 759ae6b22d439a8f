//! Draws lines over a numeric axis.

use super::Part;
use super::canvas::{Area, FAINT, INK, Legend, TEXT, colour, diamond, mark, picture};
use crate::studies::World;
use crate::studies::plot::{Line, Scale, Shape};
use crate::text::figure;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::io;
use std::ops::Range;

const HEIGHT: i32 = 290;

/// Draws the lines of the simulated and the live plot on one pair of axes.
pub fn draw(parts: &[Part<'_>]) -> io::Result<String> {
    let curves: Vec<(World, &Line)> =
        parts.iter().flat_map(|&(world, plot)| lines(world, &plot.shape)).collect();
    let Some(Shape::Curve { x, y, .. }) = parts.first().map(|(_, plot)| &plot.shape) else {
        return Ok(String::new());
    };
    let ways = curves.iter().map(|(_, line)| (line.name.clone(), line.side));
    let mut legend = Legend::new(ways, parts.iter().map(|(world, _)| *world).collect());
    legend.has_published = curves.iter().any(|(_, line)| !line.published.is_empty());
    let range = |axis: usize, scale| extent(&curves, axis, scale);
    let (xs, ys) = (range(0, x.scale), range(1, y.scale));
    let names = [x.label.as_str(), y.label.as_str()];
    picture(HEIGHT, |area| {
        legend.draw(area, 64)?;
        let area = &area.margin(Legend::HEIGHT, 4, 2, 14);
        match (x.scale, y.scale) {
            (Scale::Linear, Scale::Linear) => on_axes(area, xs, ys, names, &curves),
            (Scale::Linear, Scale::Log) => on_axes(area, xs, ys.log_scale(), names, &curves),
            (Scale::Log, Scale::Linear) => on_axes(area, xs.log_scale(), ys, names, &curves),
            (Scale::Log, Scale::Log) => {
                on_axes(area, xs.log_scale(), ys.log_scale(), names, &curves)
            }
        }
    })
}

fn lines(world: World, shape: &Shape) -> impl Iterator<Item = (World, &Line)> {
    let lines = match shape {
        Shape::Curve { lines, .. } => lines.as_slice(),
        _ => &[],
    };
    lines.iter().map(move |line| (world, line))
}

/// Returns the range that an axis must cover: all figures, published ones too, with room above.
fn extent(curves: &[(World, &Line)], axis: usize, scale: Scale) -> Range<f64> {
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

/// Draws lines on axes of these ranges. The axes' types make them linear or logarithmic.
fn on_axes<X, Y>(
    area: &Area<'_>,
    xs: X,
    ys: Y,
    [x_name, y_name]: [&str; 2],
    curves: &[(World, &Line)],
) -> io::Result<()>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let failed = io::Error::other::<DrawingAreaErrorKind<io::Error>>;
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d(xs, ys)
        .map_err(failed)?;
    let label = |value: &f64| short(*value);
    chart
        .configure_mesh()
        .x_desc(x_name)
        .y_desc(y_name)
        .axis_style(INK)
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", TEXT).into_font().color(&INK))
        .x_labels(8)
        .y_labels(6)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .draw()
        .map_err(failed)?;
    let pixel = |point: &[f64; 2]| chart.backend_coord(&(point[0], point[1]));
    let plane = area.strip_coord_spec();
    let (left, top) = plane.get_base_pixel();
    let inside = |point: &[f64; 2]| {
        let is_there = point.iter().all(|value| value.is_finite());
        is_there.then(|| pixel(point)).map(|(x, y)| (x - left, y - top))
    };
    for (world, line) in curves {
        let colour = colour(line.side);
        let points: Vec<(i32, i32)> = line.points.iter().filter_map(inside).collect();
        trace(&plane, *world, &points, colour)?;
        for point in points {
            mark(&plane, *world, point, colour)?;
        }
        for point in line.published.iter().filter_map(inside) {
            diamond(&plane, point, colour)?;
        }
    }
    Ok(())
}

/// Draws the line through the marks: solid for simulated figures, dashed for live ones.
fn trace(area: &Area<'_>, world: World, points: &[(i32, i32)], colour: RGBColor) -> io::Result<()> {
    let style = colour.stroke_width(2);
    match world {
        World::Sim => area.draw(&PathElement::new(points.to_vec(), style)),
        World::Live => area.draw(&plotters::element::DashedPathElement::new(
            points.iter().copied(),
            6,
            4,
            style,
        )),
    }
    .map_err(io::Error::other)
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
    use crate::studies::plot::Side;

    #[test]
    fn labels_are_short() {
        for (value, want) in
            [(0.0, "0"), (0.5, "0.5"), (512.0, "512"), (29_000.0, "29k"), (3.1e6, "3.1M")]
        {
            assert_eq!(short(value), want);
        }
    }

    #[test]
    fn axes_hold_everything() {
        let mut line = Line::new("a", Side::Before, vec![[10.0, 3.0]]);
        line.published = vec![[20.0, 50.0]];
        let curves = [(World::Sim, &line)];
        assert_eq!(extent(&curves, 0, Scale::Linear).start, 0.0);
        assert!(extent(&curves, 1, Scale::Linear).contains(&50.0));
        let log = extent(&curves, 1, Scale::Log);
        assert!(log.start > 0.0 && log.contains(&3.0) && log.contains(&50.0));
    }
}
