//! Makes the report's page: one HTML file that loads no other file.

use super::section::section;
use super::sheet;
use super::table::{letter, number};
use super::verdict::{Figures, Verdict};
use super::{Facts, Report};
use crate::studies::{Role, Study};
use maud::{Markup, PreEscaped, html};

pub fn page(report: &Report) -> String {
    let cpus = report.machine.cpus;
    let section = |done| Some(section(done, Study::named(done.study)?, cpus, report.effort));
    let sections = report.studies.iter().filter_map(section);
    let body = html! {
        header {
            (head(report))
            (legend())
            div.verdicts { @for verdict in &report.verdicts { (card(verdict)) } }
        }
        nav aria-label="Studies" {
            ul {
                @for done in &report.studies {
                    li { a href={ "#" (done.study) } { (done.study) } }
                }
                li { a href="#how" { "how to read it" } }
            }
        }
        main { @for section in sections { (section) } }
        (foot(report))
    };
    sheet::document(&format!("Tickless report, {}", report.date), &body)
}

fn head(report: &Report) -> Markup {
    let Facts { cpu, cpus, kernel, clock_source, load, disturbance } = &report.machine;
    let load: Vec<String> = load.iter().map(|load| format!("{load:.2}")).collect();
    let failed = report.failures().count();
    html! {
        h1 { "Tickless report" }
        p.lead {
            "Five mechanisms of Linux's timers, each beside the behaviour that it replaced: as its \
             published report has it, on a simulated machine of the size that was used there, and \
             live on this machine. All three run the same timer code."
        }
        ul.facts {
            li { (cpu) ", " (cpus) " CPUs" }
            li { "Linux " (kernel) }
            li { "clock source " (clock_source.as_deref().unwrap_or("unknown")) }
            li { "load " (load.join(" ")) }
            li { (report.date) }
            li {
                (report.effort) ", " (format!("{:.0} s", report.seconds)) ", tickless "
                (report.version)
            }
        }
        @if let Some(disturbance) = disturbance {
            p.warning { "Note: " (disturbance) "." }
        }
        @if failed > 0 {
            p.failed role="alert" { (failed) " part(s) failed; see below." }
        }
    }
}

fn legend() -> Markup {
    html! {
        ul.legend aria-label="Where figures come from" {
            li { span.chip.published { "published" } " in the report, on its machine" }
            @for (role, what) in [
                (Role::Calibrated, "a parameter was set from it: proves nothing"),
                (Role::Implied, "follows from the parameters by a formula: proves nothing"),
                (Role::Predicted, "came out by itself"),
                (Role::Live, "measured here: median, least\u{2013}most"),
            ] {
                li {
                    span class={ "chip " (role.name()) } { (role.name()) (letter(role)) } " " (what)
                }
            }
            li { span.swatch.before {} " before " span.swatch.after {} " after" }
        }
    }
}

fn card(verdict: &Verdict) -> Markup {
    let simulated_unit = verdict.simulated.as_ref().or(verdict.published.as_ref());
    let unit = simulated_unit.map_or("", |figures| figures.unit);
    html! {
        a.card href={ "#" (verdict.study) } {
            h2 { (verdict.study) }
            p { (verdict.mechanism) }
            table {
                thead {
                    tr { td {} th.before { (verdict.sides[0]) } th.after { (verdict.sides[1]) } }
                }
                tbody {
                    (line("published", &verdict.published))
                    (line("simulated", &verdict.simulated))
                    tr.unit { td colspan="3" { (unit) } }
                    (line("live", &verdict.live))
                    @if let Some(live) = &verdict.live {
                        @if live.unit != unit { tr.unit { td colspan="3" { (live.unit) } } }
                    }
                }
            }
            (checks(verdict))
        }
    }
}

fn line(name: &str, figures: &Option<Figures>) -> Markup {
    let value = |(value, role): (f64, Option<Role>)| {
        html! {
            td class=(role.map_or("published", Role::name)) {
                (number(value)) @if let Some(role) = role { (letter(role)) }
            }
        }
    };
    html! {
        tr {
            th scope="row" { (name) }
            @match figures {
                Some(figures) => { (value(figures.before)) (value(figures.after)) },
                None => { td.none { "\u{2013}" } td.none { "\u{2013}" } },
            }
        }
    }
}

fn checks(verdict: &Verdict) -> Markup {
    html! {
        ul.checks {
            @for (name, figures, missed) in [
                ("simulated", &verdict.simulated, html! { span.missed { "\u{2260}" } }),
                ("live", &verdict.live, html! { span.bad { "\u{2717}" } }),
            ] {
                @match figures {
                    Some(figures) if figures.outside.is_empty() => {
                        li { span.good { "\u{2713}" } " " (name) ": " (figures.checks(name)) }
                    },
                    Some(figures) => {
                        li title=(figures.outside.join(", ")) {
                            (missed) " " (name) ": " (figures.checks(name))
                        }
                    },
                    None => { li { "\u{2013} " (name) ": none" } },
                }
            }
        }
    }
}

fn foot(report: &Report) -> Markup {
    html! {
        footer id="how" {
            (PreEscaped(include_str!("how.html")))
            p {
                "The same figures for programs are in report.json (docs/book/src/report.md). \
                 Random seed "
                (report.seed) "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::measure::Spread;
    use crate::report::run::{Done, Part};
    use crate::studies::plot::{Axis, Plot, Series, Shape, Side};
    use crate::studies::{Band, Cell, Claim, Exhibit, Request, STUDIES, StudyResult, World};

    const HOSTILE: &str = "<script>alert(1)</script> & \"quoted\"";

    /// Returns the result of a study in which every text from outside the program contains markup,
    /// to test that the page escapes it.
    fn study(name: &'static str, world: World) -> StudyResult {
        let request = Request::new(world, Effort::Quick, 0);
        let mut study = StudyResult::new(name, &request, HOSTILE);
        let role = if world == World::Live { Role::Live } else { Role::Predicted };
        let spread = Spread { median: 2.0, low: 1.0, high: 3.0, count: 3 };
        let published = Study::named(name).unwrap().published();
        let ids = if world == World::Live { published.live } else { published.simulated };
        for id in ids {
            let cell = Cell::new(id.replace('*', "2"), "us", role, spread);
            study.cells.push(cell.within(Band::at_most(1.0)));
        }
        study.cells.push(Cell::new(HOSTILE, "us", Role::Calibrated, spread).published(7.0));
        let claim = Claim::change(1.0, 2.0, Band::at_most(50.0));
        study.cells.push(Cell::new(HOSTILE, "us", Role::Implied, spread).claims(claim));
        study.answer(HOSTILE, HOSTILE);
        study.notes.push(HOSTILE.to_string());
        let rows = vec![vec![HOSTILE.to_string(), "1".to_string()]];
        let header = vec![HOSTILE, ""];
        study.exhibits.push(Exhibit { title: HOSTILE.to_string(), header, rows });
        let line = Series::new(HOSTILE, Side::After, vec![[1.0, 2.0], [2.0, 3.0]]);
        let (x, y) = (Axis::linear(HOSTILE), Axis::log(HOSTILE));
        study.plots.push(Plot::new("a", HOSTILE, Shape::Curve { x, y, lines: vec![line] }));
        study
    }

    fn report() -> Report {
        let part = |study| Some(Part { seconds: 1.0, result: Some(study), error: None });
        let failed = Part { seconds: 0.1, result: None, error: Some(HOSTILE.to_string()) };
        let done = |it: &crate::studies::Study| Done {
            study: it.name,
            sim: part(study(it.name, World::Sim)),
            live: match it.name {
                "cancel" => Some(failed.clone()),
                "phase" => None,
                name => part(study(name, World::Live)),
            },
        };
        let studies: Vec<Done> = STUDIES.iter().map(done).collect();
        let verdicts = studies.iter().filter_map(|done| Verdict::of(done, 2)).collect();
        let machine = Facts { cpu: HOSTILE.into(), cpus: 2, ..Facts::here() };
        Report {
            schema: 1,
            version: "0",
            date: "2026-01-01T00:00:00Z".into(),
            seconds: 1.0,
            effort: "quick",
            seed: 0,
            machine,
            verdicts,
            studies,
        }
    }

    /// Goal: the page has a section for every study, marks the origins of figures differently, and
    /// shows each failed part with what to do. A study that was not run is no failure.
    #[test]
    fn every_study_has_its_part() {
        let report = report();
        let html = page(&report);
        for study in STUDIES {
            assert!(html.contains(&format!("<section id=\"{}\">", study.name)), "{}", study.name);
            assert!(html.contains(&format!("href=\"#{}\"", study.name)));
            assert!(html.contains(&format!("tickless study {} --sim", study.name)));
        }
        for class in ["published", "calibrated", "implied", "predicted", "live"] {
            assert!(html.contains(&format!("<td class=\"{class}\"")), "{class}");
        }
        assert_eq!(html.matches("The live study failed.").count(), 1);
        assert_eq!(report.failures().count(), 1);
        assert!(html.contains("tickless study cancel --live</code>"), "how to see it alone");
        assert!(html.contains("1.00\u{2013}3") || html.contains("1\u{2013}3"), "no spreads");
        // Live figures outside of their bands have a cross; missed predictions have another mark.
        assert!(html.contains("<span class=\"bad\">\u{2717}</span> live: 0 of 2 checks hold"));
        let missed = "<span class=\"missed\">\u{2260}</span> simulated: 0 of 2 predictions meet";
        assert!(html.contains(missed) && !html.contains("\u{2717}</span> simulated"));
        assert!(html.contains("what the mechanism changes"), "claims are not shown");
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let html = page(&report());
        assert!(!html.contains("<script") && !html.contains("alert(1)<"), "markup got through");
        assert!(html.matches("&lt;script&gt;").count() > 40);
        const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
        let mut open: Vec<&str> = Vec::new();
        for tag in html.split('<').skip(1) {
            let tag = &tag[..tag.find('>').expect("a tag without an end")];
            let name = tag.split([' ', '/', '\n']).find(|word| !word.is_empty()).unwrap();
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "closed in another order");
            } else if !tag.ends_with('/') && !VOID.contains(&name) {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?} left open");
    }

    #[test]
    fn the_page_needs_nothing_but_itself() {
        let html = page(&report());
        for word in ["http:", "https:", "src=", "@import", "url(", "<link", "<iframe", "<object"] {
            assert!(!html.contains(word), "{word}");
        }
        assert!(html.contains("Content-Security-Policy") && html.contains("default-src 'none'"));
        assert!(html.contains("width=device-width") && html.contains("@media print"));
        assert!(html.contains("prefers-color-scheme: dark"));
    }
}
