//! Plots in a terminal.

use crate::bars::bars_beside;
use crate::output::{bare, to_width, width, write_table};
use std::io::{self, Write};
use tickless_lab::studies::plot::{Bar, Lane, Plot, Series, Shape};
use tickless_lab::text::figure;

pub fn show(plot: &Plot, out: &mut dyn Write) -> io::Result<()> {
    match &plot.shape {
        Shape::Curve { x, lines, .. } => curve(&x.label, lines, out),
        Shape::Bars { bars, .. } => show_bars(bars, out),
        Shape::Histogram { ends, ways, .. } => {
            let ends: Vec<u64> = ends.iter().map(|&end| end as u64).collect();
            let ways: Vec<(&str, &[u64])> =
                ways.iter().map(|way| (way.name.as_str(), way.counts.as_slice())).collect();
            let lines = bars_beside(&ends, &ways);
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))
        }
        Shape::Strip { lanes, .. } => strip(lanes, out),
    }
}

fn curve(x: &str, lines: &[Series], out: &mut dyn Write) -> io::Result<()> {
    let mut places: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|point| point[0])).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let header: Vec<&str> =
        [x].into_iter().chain(lines.iter().map(|line| line.name.as_str())).collect();
    let mut table = bare(&header, 1);
    to_width(&mut table);
    for at in places {
        let value = |line: &Series| {
            let point = line.points.iter().find(|point| point[0] == at);
            point.map_or_else(|| "-".to_string(), |point| figure(point[1]))
        };
        table.add_row([figure(at)].into_iter().chain(lines.iter().map(value)));
    }
    write_table(&table, out)
}

fn show_bars(bars: &[Bar], out: &mut dyn Write) -> io::Result<()> {
    const LABEL: usize = 24;
    const VALUE: usize = 8;
    let longest = width() - LABEL - VALUE - 2;
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    for Bar { name, value, .. } in bars {
        let length = if most > 0.0 { (value / most * longest as f64).round() as usize } else { 0 };
        let line = format!("{name:<LABEL$}{:>VALUE$}  {}", figure(*value), "#".repeat(length));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes a line of marks for each lane, which shows when a group of tasks ran in its period. A
/// mark stands for a short part of the period: the more the group ran in it, the darker it is.
fn strip(lanes: &[Lane], out: &mut dyn Write) -> io::Result<()> {
    const LABEL: usize = 24;
    for Lane { name, runs, .. } in lanes {
        let mark = |&share: &f64| match share {
            0.66.. => '#',
            0.33.. => '+',
            0.05.. => '.',
            _ => ' ',
        };
        let line = format!("{name:<LABEL$}|{}|", runs.iter().map(mark).collect::<String>());
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless_lab::studies::plot::{Axis, Side};

    #[test]
    fn plots_have_their_points_bars_and_marks() {
        let lines = vec![
            Series::new("one", Side::Before, vec![[2.0, 10.0], [4.0, 20.0]]),
            Series::new("other", Side::After, vec![[4.0, 7.0]]),
        ];
        let curve = Shape::Curve { x: Axis::log("CPUs"), y: Axis::log("ns"), lines };
        let bar = |name: &str, value| Bar { name: name.into(), side: Side::Beside, value };
        let bars = Shape::Bars { unit: "s", bars: vec![bar("a", 4.0), bar("b", 0.0)] };
        let runs = vec![1.0, 0.4, 0.1, 0.0];
        let lane = Lane { name: "group".into(), side: Side::Before, refill_ms: 0.0, runs };
        let strip = Shape::Strip { period_ms: 100.0, lanes: vec![lane] };
        for (shape, wanted) in [
            (curve, "CPUs one other\n2 10 -\n4 20 7"),
            (bars, &format!("a 4 {}\nb 0", "#".repeat(46))),
            (strip, "group |#+. |"),
        ] {
            let mut out = Vec::new();
            show(&Plot::new("a", "A", shape), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(text.lines().map(words).collect::<Vec<_>>().join("\n"), wanted, "{text}");
        }
    }
}
