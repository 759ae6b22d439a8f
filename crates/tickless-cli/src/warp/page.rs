//! The report of `tickless warp` as a page with a timeline.

use maud::{DOCTYPE, PreEscaped, html};
use std::fmt::Write;
use tickless_warp::report::{Report, Row};

/// Rows of the timeline; the table has all.
const LANES: usize = 40;
const LANE_HEIGHT: usize = 18;
const WIDTH: f64 = 900.0;

const STYLE: &str = "body{font:15px system-ui,sans-serif;max-width:64rem;margin:2rem auto;\
    padding:0 1rem}\
    table{border-collapse:collapse;width:100%}td,th{padding:.2rem .6rem;text-align:left;\
    border-bottom:1px solid #8884}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
    svg{width:100%;height:auto}text{font:11px system-ui,sans-serif;fill:currentColor}\
    :root{color-scheme:light dark}";

/// Makes the page, which needs no other file.
pub(super) fn page(title: &str, closing_line: &str, report: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Waits of " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Waits of " code { (title) } }
                p { (closing_line) "." }
                h2 { "Timeline" }
                (PreEscaped(timeline(report)))
                h2 { "Waits" }
                p { "Waited: the time of all these waits, which overlap. Jumped: the time that the \
                     program would take less without them." }
                table {
                    tr {
                        @for head in ["process", "thread", "call"] { th { (head) } }
                        @for head in ["waits", "timeouts", "longest s", "waited s", "jumped s"] {
                            th.n { (head) }
                        }
                    }
                    @for row in &report.rows {
                        tr {
                            td { (row.pid) " " (row.process) }
                            td { (row.tid) " " (row.thread) }
                            td { (row.call) }
                            td.n { (row.waits) }
                            td.n { (row.timeouts) }
                            @for seconds in [row.longest_s, row.waited_s, row.jumped_s] {
                                td.n { (format!("{seconds:.3}")) }
                            }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// Draws each wait as a bar, with a lane for each row of the table.
fn timeline(report: &Report) -> String {
    let lanes = report.rows.len().min(LANES);
    let end = report.spans.iter().map(|span| span.end_s).fold(1e-9, f64::max);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"waits over time\">",
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
             fill=\"#4a8\" opacity=\"0.5\"><title>{:.3} s to {:.3} s</title></rect>",
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
