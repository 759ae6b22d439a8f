//! Writes a prediction as an HTML page, with the styles of `tickless report`.

use super::{HEADER, cells, summary, verdict};
use crate::output::note;
use maud::{Markup, html};
use tickless_lab::report::sheet;
use tickless_lab::studies::World;
use tickless_lab::studies::plot::{Axis, Plot, Series, Shape, Side};
use tickless_lab::text::time;
use tickless_trace::quota::{Prediction, Setting};

pub(super) fn page(prediction: &Prediction) -> String {
    let delayed =
        curve(prediction, "delayed", "% of the work delayed", |it| [it.delayed_percent; 2]);
    let sum =
        |it: &Setting| [it.stood_ns.sum.least, it.stood_ns.sum.most].map(|ns| ns as f64 / 1e9);
    let stood = curve(prediction, "stood", "s stood still", sum);
    let rows = html! {
        @for setting in &prediction.settings {
            tr { @for cell in cells(setting) { td { (cell) } } }
        }
    };
    let body = html! {
        header {
            h1 { "What another CPU limit would have done" }
            p.lead {
                @for least in &prediction.least { (verdict(prediction, least)) " " }
            }
            p { (summary(prediction)) }
            @if !prediction.notes.is_empty() {
                ul.notes { @for note in &prediction.notes { li { (note) } } }
            }
        }
        main {
            section { h2 { "By limit" } (delayed) (stood) }
            section {
                h2 { "All settings" }
                (sheet::table(Some("cells"), None, &HEADER, &rows))
                p { (note("quota columns")) }
            }
            section {
                h2 { "What this cannot know" }
                p { (note("quota unknown")) }
            }
        }
    };
    sheet::document(&format!("Tickless: limits for {}", prediction.file), &body)
}

/// Plots a figure over the CPU limit, with a line for each number of CPUs, period and burst, or two
/// if any least and most figure differ.
fn curve(
    prediction: &Prediction,
    id: &'static str,
    label: &str,
    figure: impl Fn(&Setting) -> [f64; 2],
) -> Markup {
    let mut lines: Vec<Series> = Vec::new();
    let is_band = prediction.settings.iter().map(&figure).any(|[least, most]| least < most);
    let edges: &[&str] = if is_band { &[", least", ", most"] } else { &[""] };
    let points = prediction
        .settings
        .iter()
        .flat_map(|it| edges.iter().zip(figure(it)).map(move |e| (it, e)));
    for (setting, (edge, value)) in points {
        let burst = 100.0 * setting.burst_us as f64 / setting.quota_us.max(1) as f64;
        let name = format!(
            "{} CPUs, period {}, burst {burst:.0} %{edge}",
            setting.cpus,
            time(setting.period_us * 1_000)
        );
        let point = [setting.limit_cpus, value];
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => {
                let sides = [Side::After, Side::Before, Side::Beside];
                let (side, pattern) = (sides[lines.len() % 3], lines.len() / 3);
                lines.push(Series { pattern, ..Series::new(name, side, vec![point]) });
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a[0].total_cmp(&b[0])));
    let (x, y) = (Axis::linear("limit in CPUs"), Axis::linear(label));
    sheet::picture(World::Sim, &Plot::new(id, label, Shape::Curve { x, y, lines }))
}
