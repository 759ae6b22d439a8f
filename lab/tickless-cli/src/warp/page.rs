//! The report of `tickless warp` as a page with a timeline, with the styles of `tickless report`.

use maud::{PreEscaped, html};
use std::fmt::Write;
use tickless_lab::report::sheet;
use tickless_warp::report::{Report, Row};

/// The most rows that the timeline shows. The page's table has all rows.
const LANES: usize = 40;
const LANE_HEIGHT: usize = 18;
const WIDTH: f64 = 900.0;

const NOTE: &str = "Waited: the time of all these waits, which overlap. Jumped: the time that the \
    program would take less without them.";

/// Makes the page, which needs no other file.
pub(super) fn page(title: &str, closing_line: &str, report: &Report) -> String {
    let body = html! {
        header {
            h1 { "Waits of " code { (title) } }
            p.lead { (closing_line) "." }
        }
        main {
            section { h2 { "Timeline" } div.scroll { (PreEscaped(timeline(report))) } }
            section {
                h2 { "Waits" }
                p { (NOTE) }
                div.scroll { table.cells {
                    thead { tr {
                        @for head in ["process", "thread", "call"] { th.text { (head) } }
                        @for head in ["waits", "timeouts", "longest s", "waited s", "jumped s"] {
                            th { (head) }
                        }
                    } }
                    tbody { @for row in &report.rows { tr {
                        td.text { (row.pid) " " (row.process) }
                        td.text { (row.tid) " " (row.thread) }
                        td.text { (row.call) }
                        td { (row.waits) }
                        td { (row.timeouts) }
                        @for seconds in [row.longest_s, row.waited_s, row.jumped_s] {
                            td { (format!("{seconds:.3}")) }
                        }
                    } } }
                } }
            }
        }
    };
    sheet::document(&format!("Waits of {title}"), &body)
}

/// Draws each wait as a bar, with a lane for each row of the table.
fn timeline(report: &Report) -> String {
    let lanes = report.rows.len().min(LANES);
    let end = report.spans.iter().map(|span| span.end_s).fold(1e-9, f64::max);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"waits over time\" \
         style=\"min-width: 40rem; font-size: 11px; fill: currentColor\">",
        (lanes + 1) * LANE_HEIGHT
    );
    for span in report.spans.iter().filter(|span| span.row < lanes) {
        let x = span.begin_s / end * WIDTH;
        let width = ((span.end_s - span.begin_s) / end * WIDTH).max(0.5);
        let y = span.row * LANE_HEIGHT + 2;
        let height = LANE_HEIGHT - 4;
        let _ = write!(
            svg,
            "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\" \
             fill=\"var(--after)\" opacity=\"0.5\"><title>{:.3} s to {:.3} s</title></rect>",
            span.begin_s, span.end_s
        );
    }
    for (lane, row) in report.rows.iter().take(lanes).enumerate() {
        let Row { tid, process, call, .. } = row;
        let label = html! { (tid) " " (process) ": " (call) }.into_string();
        let y = (lane + 1) * LANE_HEIGHT - 5;
        let _ = write!(svg, "<text x=\"4\" y=\"{y}\">{label}</text>");
    }
    let y = (lanes + 1) * LANE_HEIGHT - 5;
    let _ =
        write!(svg, "<text x=\"{WIDTH}\" y=\"{y}\" text-anchor=\"end\">{end:.3} s</text></svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless_warp::report::Span;

    #[test]
    fn names_are_escaped_and_each_wait_has_a_bar() {
        let row = Row { process: "<b>".into(), call: "poll".into(), ..Row::default() };
        let span = Span { row: 0, begin_s: 1.0, end_s: 2.0 };
        let report = Report { rows: vec![row], spans: vec![span, span] };
        let page = page("a && b", "2 s passed", &report);
        assert!(
            page.contains("&lt;b&gt;") && !page.contains("<b>") && page.contains("a &amp;&amp; b")
        );
        assert_eq!(page.matches("<rect").count(), 2);
        assert_eq!(timeline(&Report::default()).matches("<rect").count(), 0);
    }
}
