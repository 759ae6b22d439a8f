//! The report of `tickless warp` as a page with a timeline, with the styles of `tickless report`.

use maud::{PreEscaped, html};
use tickless_lab::report::draw::canvas::{Anchor, WIDTH, block, colour, picture, text};
use tickless_lab::report::sheet;
use tickless_lab::studies::plot::Side;
use tickless_warp::report::{Report, Row};

/// The most rows that the timeline shows. The page's table has all rows.
const LANES: usize = 40;
const LANE_HEIGHT: i32 = 18;

const HEADER: [&str; 8] =
    ["process", "thread", "call", "waits", "timeouts", "longest s", "waited s", "jumped s"];

const NOTE: &str = "Waited: the time of all these waits, which overlap. Jumped: the time that the \
    program would take less without them.";

/// Makes the page, which needs no other file.
pub(super) fn page(title: &str, closing_line: &str, report: &Report) -> String {
    let rows = html! {
        @for row in &report.rows { tr {
            td.text { (row.pid) " " (row.process) }
            td.text { (row.tid) " " (row.thread) }
            td.text { (row.call) }
            td { (row.waits) }
            td { (row.timeouts) }
            @for seconds in [row.longest_s, row.waited_s, row.jumped_s] {
                td { (format!("{seconds:.3}")) }
            }
        } }
    };
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
                (sheet::table(Some("cells waits"), None, &HEADER, &rows))
            }
        }
    };
    sheet::document(&format!("Waits of {title}"), &body)
}

/// Draws each wait as a bar, with a lane for each row of the table.
fn timeline(report: &Report) -> String {
    let rows = &report.rows[..report.rows.len().min(LANES)];
    let end = report.spans.iter().map(|span| span.end_s).fold(1e-9, f64::max);
    let x = |seconds: f64| (seconds / end * f64::from(WIDTH)) as i32;
    let after = colour(Side::After);
    let middle = |lane: usize| lane as i32 * LANE_HEIGHT + LANE_HEIGHT / 2;
    let content = html! {
        @for span in report.spans.iter().filter(|span| span.row < rows.len()) {
            @let (from, to, middle) = (x(span.begin_s), x(span.end_s), middle(span.row));
            g {
                title { (format!("{:.3} s to {:.3} s", span.begin_s, span.end_s)) }
                (block([(from, middle - 7), (to.max(from + 1), middle + 7)], after, 0.5))
            }
        }
        @for (lane, Row { tid, process, call, .. }) in rows.iter().enumerate() {
            (text(&format!("{tid} {process}: {call}"), (4, middle(lane)), Anchor::Left))
        }
        (text(&format!("{end:.3} s"), (WIDTH, middle(rows.len())), Anchor::Right))
    };
    picture((0, middle(rows.len() + 1)), "waits over time", &content)
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
