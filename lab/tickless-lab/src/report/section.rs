//! Makes a study's section of the page.

use super::draw;
use super::run::{Done, Part};
use super::sheet;
use super::table;
use crate::studies::published::{PublishedReport, Results};
use crate::studies::{Answer, Cell, Study, StudyResult, World};
use maud::{Markup, html};

pub fn section(done: &Done, study: &Study, cpus: usize, effort: &str) -> Markup {
    let published = study.published();
    let result = |part: &'_ Option<Part>| part.as_ref().and_then(|part| part.result.clone());
    let (sim, live) = (result(&done.sim), result(&done.live));
    let results = Results { sim: sim.as_ref(), live: live.as_ref(), cpus };
    let [plots, below] = plots(&results, &published);
    html! {
        section id=(study.name) {
            h2 { (study.name) span.mechanism { (published.mechanism) } }
            p.asked {
                (published.asked)
                span.source { (published.source) ". " (published.machine) "." }
            }
            (failure(&done.sim, World::Sim, study.name))
            (failure(&done.live, World::Live, study.name))
            div.pair {
                div.tables {
                    @for one in published.tables() { (table::of_published(&one, &results)) }
                    @if let Some(sim) = results.sim { (table::of_claims(sim.cells.iter())) }
                    (outside(&results))
                    (command(study.name, effort))
                    (below)
                }
                div.plots { (plots) }
            }
            (answers(&results))
            (details(&results))
        }
    }
}

fn failure(part: &Option<Part>, world: World, study: &str) -> Markup {
    match part.as_ref().and_then(|part| part.error.as_deref()) {
        None => html! {},
        Some(error) => html! {
            p.failed role="alert" {
                strong { "The " (world.label()) " study failed. " }
                (error) ". To see it alone: "
                code { "tickless study " (study) " --" (world.name()) }
            }
        },
    }
}

fn outside(results: &Results<'_>) -> Markup {
    let missed = html! { span.missed { "\u{2260}" } " The simulation misses what was published: " };
    let outside = html! { span.bad { "\u{2717}" } " Live, outside of its band: " };
    html! {
        @for (what, study) in [(missed, results.sim), (outside, results.live)] {
            @let cells: Vec<&Cell> = study.into_iter().flat_map(StudyResult::outside).collect();
            @if !cells.is_empty() {
                p.outside {
                    (what)
                    @for (at, cell) in cells.iter().enumerate() {
                        @if at > 0 { ", " }
                        code { (cell.id) }
                    }
                }
            }
        }
    }
}

fn command(study: &str, effort: &str) -> Markup {
    let how_long = match effort {
        "quick" => " --quick",
        "full" => " --full",
        _ => "",
    };
    html! {
        p.command {
            "Alone: "
            code { "tickless study " (study) " --sim" } " and "
            code { "tickless study " (study) " --live" (how_long) }
        }
    }
}

/// How many plots to show next to the tables: this many are about as high as the tables.
const BESIDE_TABLES: usize = 3;

/// Returns the plots to show next to the tables, beginning with the study's most important ones,
/// and the plots to show below the tables.
fn plots(results: &Results<'_>, published: &PublishedReport) -> [Markup; 2] {
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for group in draw::groups(results.sim, results.live) {
        let plot = group[0].1;
        let figure = sheet::group(&group);
        let side = if published.plots.contains(&plot.id) { &mut first } else { &mut others };
        side.push(figure);
    }
    let room = BESIDE_TABLES.saturating_sub(first.len()).min(others.len());
    first.extend(others.drain(..room));
    let all = |figures: Vec<Markup>| html! { @for figure in figures { (figure) } };
    [all(first), all(others)]
}

fn answers(results: &Results<'_>) -> Markup {
    let studies = [results.sim, results.live].into_iter().flatten();
    let all = studies.flat_map(|study| study.answers.iter().map(|answer| (study.world, answer)));
    let all: Vec<(World, &Answer)> = all.collect();
    html! {
        @if !all.is_empty() {
            h3 { "Its open questions" }
            dl.answers {
                @for (world, answer) in &all {
                    div {
                        dt { (answer.question) }
                        dd { (answer.answer) " " (mark(*world)) }
                    }
                }
            }
        }
    }
}

fn mark(world: World) -> Markup {
    let class = if world == World::Sim { "predicted" } else { "live" };
    html! { span class={ "chip " (class) } { (world.label()) } }
}

fn details(results: &Results<'_>) -> Markup {
    html! {
        @for study in [results.sim, results.live].into_iter().flatten() {
            details {
                summary {
                    "All " (study.cells.len()) " " (study.world.label())
                    " figures, and how they came about"
                }
                p { (study.machine) }
                ul.notes { @for note in &study.notes { li { (note) } } }
                @for exhibit in &study.exhibits { (table::of_exhibit(exhibit)) }
                (table::of_cells(study.cells.iter()))
            }
        }
    }
}
