//! Draws plots as inline SVG, with colours that the page's style sheet chooses.
//!
//! The behaviour without the mechanism, the behaviour with it and other variants have one colour
//! each in all plots. The mark shows where a figure comes from: a disc and a solid line mean
//! simulated, a square and a dashed line measured live, a hollow diamond published. So the origin
//! of a figure can be seen without colours.

mod beside;
mod blocks;
pub mod canvas;
mod curve;

pub use beside::beside;

use crate::studies::plot::{Plot, Shape};
use crate::studies::{StudyResult, World};

pub type Part<'a> = (World, &'a Plot);

/// Groups the plots of a study by their id. The plots of a group share axes.
pub fn groups<'a>(
    sim: Option<&'a StudyResult>,
    live: Option<&'a StudyResult>,
) -> Vec<Vec<Part<'a>>> {
    let mut groups: Vec<Vec<Part<'a>>> = Vec::new();
    for study in [sim, live].into_iter().flatten() {
        for plot in &study.plots {
            match groups.iter_mut().find(|group| group[0].1.id == plot.id) {
                Some(group) => group.push((study.world, plot)),
                None => groups.push(vec![(study.world, plot)]),
            }
        }
    }
    groups
}

/// Draws plots of one kind on one pair of axes. Returns the picture as SVG.
pub fn draw(parts: &[Part<'_>]) -> String {
    let Some((_, first)) = parts.first() else { return String::new() };
    let (extent, content) = match &first.shape {
        Shape::Curve { .. } => curve::draw(parts),
        Shape::Bars { .. } => blocks::bars(parts),
        Shape::Histogram { .. } => blocks::histogram(parts),
        Shape::Strip { .. } => blocks::strip(parts),
    };
    canvas::picture(extent, &first.title, &content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::plot::{Axis, Bar, Counts, Lane, Series, Side};

    fn shapes() -> Vec<Shape> {
        let name = || "a <b> & c".to_string();
        let side = Side::Before;
        let mut line = Series::new(name(), side, vec![[2.0, 10.0], [512.0, 1e5]]);
        line.published = vec![[32.0, 29_000.0]];
        let lines = vec![line];
        vec![
            Shape::Curve { x: Axis::log("CPUs"), y: Axis::log("ns"), lines: lines.clone() },
            Shape::Curve { x: Axis::linear("CPUs"), y: Axis::linear("ns"), lines },
            Shape::Bars { unit: "s", bars: vec![Bar { name: name(), side, value: 3.0 }] },
            Shape::Histogram {
                unit: "us",
                ends: vec![10.0, 20.0],
                ways: vec![Counts { name: name(), side, counts: vec![1, 2, 3] }],
            },
            Shape::Strip {
                period_ms: 100.0,
                lanes: vec![Lane { name: name(), side, refill_ms: 50.0, runs: vec![0.0, 1.0] }],
            },
        ]
    }

    /// Goal: every kind of plot becomes one image with a title, names are escaped, and all colours
    /// are variables of the style sheet.
    #[test]
    fn every_form_is_drawn() {
        for shape in shapes() {
            let plot = Plot::new("a", "one \"two\" <three>", shape);
            let svg = draw(&[(World::Sim, &plot), (World::Live, &plot)]);
            assert!(svg.starts_with("<svg role=\"img\" aria-label=\"one &quot;two&quot; &lt;"));
            assert!(svg.trim_end().ends_with("</svg>") && !svg.contains("<b>"), "{svg}");
            assert!(!svg.contains("://"), "{svg}");
            assert!(svg.contains("var(--before)") && !svg.contains("=\"#"), "{svg}");
            let is_shared = !matches!(plot.shape, Shape::Histogram { .. });
            assert!(svg.contains("live") && svg.contains("simulated") == is_shared, "{svg}");
        }
    }

    /// Goal: a plot that cannot be drawn, such as one without points, becomes an empty picture.
    #[test]
    fn an_empty_plot_is_an_empty_picture() {
        assert_eq!(draw(&[]), "");
        let nowhere = Series::new("a", Side::After, vec![[f64::NAN, 1.0]]);
        for lines in [vec![], vec![nowhere]] {
            let shape = Shape::Curve { x: Axis::log("x"), y: Axis::log("y"), lines };
            assert!(draw(&[(World::Sim, &Plot::new("a", "A", shape))]).contains("</svg>"));
        }
        let empty = Shape::Histogram { unit: "us", ends: vec![1.0], ways: vec![] };
        assert!(draw(&[(World::Live, &Plot::new("a", "A", empty))]).contains("</svg>"));
    }
}
