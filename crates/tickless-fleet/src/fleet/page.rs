//! Writes the summary of a fleet as one HTML page, with the styles and plots of `tickless report`.

use super::{Differs, FIGURES, Figures, Fleet, Machine, Spread};
use maud::{Markup, html};
use std::io;
use tickless_lab::report::sheet;
use tickless_lab::studies::World;
use tickless_lab::studies::plot::{Axis, Bar, Line, Plot, Shape, Side};
use tickless_lab::text::figure;

/// The highest number of machines in the page's table. The JSON and CSV outputs have all machines.
const ROWS_MAX: usize = 1_000;

pub fn page(fleet: &Fleet) -> io::Result<String> {
    let usable: Vec<&Figures> =
        fleet.machines.iter().filter_map(|it| it.figures.as_ref()).collect();
    let plots = plots(fleet, &usable).into_iter().map(|plot| sheet::picture(World::Sim, &plot));
    let plots: Vec<Markup> = plots.collect::<io::Result<_>>()?;
    let body = html! {
        header {
            h1 { "Tickless fleet" }
            p.lead {
                (usable.len()) " traces, each replayed through the timer core under three \
                 policies. Rates are for each CPU and second. Device writes and wakeups are as \
                 recorded, or of the replay under restart-aware where a trace does not have \
                 them; what a policy would have saved is of the replay."
            }
            @if fleet.failed() > 0 {
                p.failed role="alert" { (fleet.failed()) " traces cannot be used; see below." }
            }
        }
        main {
            @if !usable.is_empty() {
                section {
                    h2 { "All machines" }
                    div.pair {
                        div.tables { (quantiles(&fleet.quantiles)) }
                        div.plots { @for plot in &plots { (plot) } }
                    }
                }
                section { h2 { "Machines that differ most" } (differ(&fleet.differ)) }
                section { h2 { "Each machine" } (machines(&fleet.machines)) }
            }
            @if fleet.failed() > 0 {
                section { h2 { "Traces that cannot be used" } (failed(&fleet.machines)) }
            }
        }
    };
    Ok(sheet::document("Tickless fleet", &body))
}

fn plots(fleet: &Fleet, usable: &[&Figures]) -> Vec<Plot> {
    let share = "machines with less, %";
    let line = |name: &str, side, of: &dyn Fn(&Figures) -> f64| {
        let mut values: Vec<f64> = usable.iter().map(|figures| of(figures)).collect();
        values.sort_by(f64::total_cmp);
        let last = (values.len().max(2) - 1) as f64;
        let point = |(place, value): (usize, f64)| [100.0 * place as f64 / last, value];
        Line::new(name, side, values.into_iter().enumerate().map(point).collect())
    };
    let under = |saves: fn(&Figures) -> f64| {
        move |it: &Figures| it.device_writes_per_cpu_s * (1.0 - saves(it) / 100.0)
    };
    let writes = vec![
        line("eager", Side::Before, &under(|it| it.eager_saves_percent)),
        line("lazy", Side::After, &under(|it| it.lazy_saves_percent)),
        line("restart-aware", Side::Beside, &under(|it| it.restart_aware_saves_percent)),
    ];
    let saved = vec![line("lazy", Side::After, &|it| it.lazy_saves_percent.max(0.0))];
    let curve = |id, title: &str, label: &str, lines| {
        let (x, y) = (Axis::linear(share), Axis::linear(label));
        Plot::new(id, title, Shape::Curve { x, y, lines })
    };
    let mut plots = vec![
        curve("writes", "Device writes under each policy", "writes for each CPU and s", writes),
        curve("saved", "Device writes that lazy would have saved", "%", saved),
    ];
    if !fleet.differ.is_empty() {
        let bar =
            |it: &Differs| Bar { name: short(&it.trace), side: Side::Beside, value: it.distance };
        let bars = fleet.differ.iter().map(bar).collect();
        let unit = "times half the distance between the quartiles";
        let title = "How far the machines that differ are from the median";
        plots.push(Plot::new("differ", title, Shape::Bars { unit, bars }));
    }
    plots
}

/// Shortens a file's name to its end, so that it fits beside a bar of the plot.
fn short(trace: &str) -> String {
    const LETTERS_MAX: usize = 16;
    let name = trace.rsplit('/').next().unwrap_or(trace);
    let from = name.char_indices().rev().nth(LETTERS_MAX - 1).map_or(0, |(at, _)| at);
    name[from..].to_string()
}

fn quantiles(quantiles: &[Spread]) -> Markup {
    html! {
        div.scroll { table {
            thead { tr {
                th {} th { "unit" } th { "5 %" } th { "25 %" } th { "median" } th { "75 %" }
                th { "95 %" }
            } }
            tbody { @for (it, figure_of) in quantiles.iter().zip(FIGURES) { tr {
                th scope="row" { (figure_of.about) }
                td.unit { (it.unit) }
                @for value in [it.p5, it.p25, it.p50, it.p75, it.p95] { td { (figure(value)) } }
            } } }
        } }
    }
}

fn differ(differ: &[Differs]) -> Markup {
    html! {
        @if differ.is_empty() { p { "None: all machines are alike." } }
        ul.notes { @for it in differ { li { code { (it.trace) } " " (it.why) "." } } }
    }
}

fn machines(machines: &[Machine]) -> Markup {
    let usable = machines.iter().filter_map(|it| Some((&it.trace, it.figures.as_ref()?)));
    html! {
        @if machines.len() > ROWS_MAX {
            p { "The first " (ROWS_MAX) "; --format json and csv have all." }
        }
        div.scroll { table.cells {
            thead { tr {
                th {} th { "CPUs" } th { "s" }
                @for of in FIGURES { th { (of.about) ", " (of.unit) } }
                th { "arms most" }
            } }
            tbody { @for (trace, it) in usable.take(ROWS_MAX) { tr {
                th scope="row" { (trace) }
                td { (it.cpus) }
                td { (figure(it.seconds)) }
                @for of in FIGURES { td { (figure((of.of)(it))) } }
                td { (it.arms_most) " " (figure(it.arms_most_percent)) " %" }
            } } }
        } }
    }
}

fn failed(machines: &[Machine]) -> Markup {
    let errors = machines.iter().filter_map(|it| it.error.as_ref());
    html! { ul.notes { @for error in errors.take(ROWS_MAX) { li { (error) } } } }
}
