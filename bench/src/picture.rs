//! The page's picture: bars on a logarithmic scale, a part for each operation. Equal results make
//! equal files.

use crate::report::number;
use crate::summary::{Owner, Panel};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 860;
const LEFT: i32 = 250;
/// Where the scale ends, before the figures of the longest bars.
const RIGHT: i32 = 790;
const TITLE: i32 = 34;
const BAR: i32 = 17;
const GAP: i32 = 14;
const AXIS: i32 = 44;

const BACKGROUND: RGBColor = RGBColor(255, 255, 255);
const INK: RGBColor = RGBColor(40, 40, 40);
const LINE: RGBColor = RGBColor(222, 222, 222);

fn color(whose: Owner) -> RGBColor {
    match whose {
        Owner::OneThread | Owner::OneThreadFromC => RGBColor(0, 94, 162),
        Owner::AnyThread | Owner::AnyThreadFromC => RGBColor(66, 153, 214),
        Owner::Tokio => RGBColor(214, 120, 40),
        Owner::Other => RGBColor(160, 160, 160),
    }
}

pub fn svg(panels: &[Panel]) -> Result<String, String> {
    let bars: usize = panels.iter().map(|panel| panel.bars.len()).sum();
    let height = AXIS + panels.len() as i32 * (TITLE + GAP) + bars as i32 * BAR;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height as u32)).into_drawing_area();
        draw(&root, panels, height).map_err(|error| format!("cannot draw: {error}"))?;
        root.present().map_err(|error| format!("cannot draw: {error}"))?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type DrawError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(root: &Area<'a>, panels: &[Panel], height: i32) -> Result<(), DrawError<'a>> {
    root.fill(&BACKGROUND)?;
    let decades = decades(panels);
    for decade in 0..=decades {
        let x = place(10f64.powi(decade), decades);
        root.draw(&PathElement::new(vec![(x, 8), (x, height - AXIS + 10)], LINE))?;
        let label = match decade {
            0..=2 => format!("{} ns", 10u64.pow(decade as u32)),
            _ => format!("{} us", 10u64.pow(decade as u32 - 3)),
        };
        put(root, &label, (x, height - AXIS + 22), 13, HPos::Center)?;
    }
    let legend = "per operation, medians; logarithmic: each line is ten times the one before";
    put(root, legend, (LEFT, height - 8), 12, HPos::Left)?;
    let mut y = GAP;
    for panel in panels {
        put(root, panel.title, (8, y + TITLE / 2), 16, HPos::Left)?;
        y += TITLE;
        for bar in &panel.bars {
            let end = place(bar.ns, decades).max(LEFT + 2);
            let body =
                Rectangle::new([(LEFT, y + 2), (end, y + BAR - 2)], color(bar.whose).filled());
            root.draw(&body)?;
            put(root, bar.name, (LEFT - 6, y + BAR / 2), 13, HPos::Right)?;
            put(root, &number(bar.ns), (end + 5, y + BAR / 2), 12, HPos::Left)?;
            y += BAR;
        }
        y += GAP;
    }
    Ok(())
}

fn put<'a>(
    root: &Area<'a>,
    text: &str,
    at: (i32, i32),
    size: u32,
    side: HPos,
) -> Result<(), DrawError<'a>> {
    let style = ("sans-serif", size).into_font().color(&INK).pos(Pos::new(side, VPos::Center));
    root.draw(&Text::new(text.to_string(), at, style))
}

/// The powers of ten of the longest bar.
fn decades(panels: &[Panel]) -> i32 {
    let longest = panels.iter().flat_map(|panel| &panel.bars).map(|bar| bar.ns);
    longest.fold(10.0, f64::max).log10().ceil() as i32
}

fn place(ns: f64, decades: i32) -> i32 {
    let part = ns.max(1.0).log10() / f64::from(decades);
    LEFT + (part * f64::from(RIGHT - LEFT)).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Bar;

    fn panel(ns: &[f64]) -> Panel {
        let bar = |&ns| Bar { name: "a peer", whose: Owner::Other, ns };
        Panel { title: "an operation", bars: ns.iter().map(bar).collect() }
    }

    #[test]
    fn equal_results_make_equal_pictures() {
        let panels = [panel(&[3.0, 250.0]), panel(&[9_000.0])];
        let text = svg(&panels).expect("it draws");
        assert_eq!(text, svg(&panels).expect("it draws"));
        assert!(text.contains("an operation") && text.contains("9000") && text.contains("10 us"));
    }

    #[test]
    fn scale_is_logarithmic() {
        let step = (RIGHT - LEFT) / 4;
        assert_eq!([1.0, 10.0, 100.0].map(|ns| place(ns, 4)), [LEFT, LEFT + step, LEFT + 2 * step]);
        assert_eq!(place(0.2, 4), LEFT, "no bar is shorter than zero");
    }
}
