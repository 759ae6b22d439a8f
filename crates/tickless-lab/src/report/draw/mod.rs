//! Plots as inline SVG whose colours follow the page.
//!
//! Before, after and what stands beside them have one colour each, everywhere; where a figure
//! comes from is told by the mark: a disc and a solid line are simulated, a square and a dashed
//! line live, a hollow diamond published. So nothing hangs on colour alone.
//!
//! | file | what |
//! |---|---|
//! | `colour` | colours that a style sheet chooses |
//! | `canvas` | a drawing area in pixels, its texts and its legend |
//! | `curve` | lines over numbers |
//! | `blocks` | bars, histograms, strips of a period |

mod blocks;
mod canvas;
pub mod colour;
mod curve;

use crate::studies::plot::{Plot, Shape};
use crate::studies::{StudyResult, World};
use std::io;

/// A plot of one world.
pub type Part<'a> = (World, &'a Plot);

/// The plots of both worlds, those of the same name together.
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

/// One picture of plots of the same name, as SVG. Colours are variables of the style sheet,
/// see [`colour`].
pub fn draw(parts: &[Part<'_>]) -> io::Result<String> {
    let Some((_, first)) = parts.first() else { return Ok(String::new()) };
    let svg = match &first.shape {
        Shape::Curve { .. } => curve::draw(parts),
        Shape::Bars { .. } => blocks::bars(parts),
        Shape::Histogram { .. } => blocks::histogram(parts),
        Shape::Strip { .. } => blocks::strip(parts),
    }?;
    Ok(colour::themed(&entitled(&svg, &first.title)))
}

/// With a name that is read out, and without a size of its own: the page gives it one.
fn entitled(svg: &str, title: &str) -> String {
    let start = svg.find("viewBox").unwrap_or(0);
    let open = format!(
        "<svg role=\"img\" aria-label=\"{}\" ",
        title.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
    );
    // A page or another picture around it makes the namespace unnecessary.
    let rest = svg[start..].replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    format!("{open}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::plot::{Axis, Bar, Counts, Lane, Line, Side};

    fn shapes() -> Vec<Shape> {
        let name = || "a <b> & c".to_string();
        let side = Side::Before;
        let mut line = Line::new(name(), side, vec![[2.0, 10.0], [512.0, 1e5]]);
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

    /// Goal: every form becomes one image with a name, names are escaped, and all colours are the
    /// style sheet's.
    #[test]
    fn every_form_is_drawn() {
        for shape in shapes() {
            let plot = Plot::new("a", "one \"two\" <three>", shape);
            let svg = draw(&[(World::Sim, &plot), (World::Live, &plot)]).unwrap();
            assert!(svg.starts_with("<svg role=\"img\" aria-label=\"one &quot;two&quot; &lt;"));
            assert!(svg.trim_end().ends_with("</svg>") && !svg.contains("<b>"), "{svg}");
            assert!(!svg.contains("://"), "{svg}");
            assert!(svg.contains("var(--before)") && !svg.contains("=\"#"), "{svg}");
            let is_shared = !matches!(plot.shape, Shape::Histogram { .. });
            assert!(svg.contains("live") && svg.contains("simulated") == is_shared, "{svg}");
        }
    }

    /// Goal: what cannot be drawn, such as no points at all, is an empty picture and no panic.
    #[test]
    fn an_empty_plot_is_an_empty_picture() {
        assert_eq!(draw(&[]).unwrap(), "");
        let nowhere = Line::new("a", Side::After, vec![[f64::NAN, 1.0]]);
        for lines in [vec![], vec![nowhere]] {
            let shape = Shape::Curve { x: Axis::log("x"), y: Axis::log("y"), lines };
            assert!(draw(&[(World::Sim, &Plot::new("a", "A", shape))]).unwrap().contains("</svg>"));
        }
        let empty = Shape::Histogram { unit: "us", ends: vec![1.0], ways: vec![] };
        assert!(draw(&[(World::Live, &Plot::new("a", "A", empty))]).unwrap().contains("</svg>"));
    }
}
