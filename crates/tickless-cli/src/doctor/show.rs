//! Prints the findings of `tickless doctor` as text, JSON or CSV.

use crate::output::{Colours, Results, Tone, paragraph, write_csv};
use std::io::{self, Write};
use tickless_lab::doctor::{Finding, Verdict};
use tickless_lab::measure::{disturbance, machine};
use tickless_lab::text::figure;

impl Results for [Finding] {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        text(self, Colours::of_stdout(), out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "check,verdict,figure,unit,how,advice,study";
        write_csv(header, self, out)
    }
}

/// Writes findings, the worst last.
fn text(findings: &[Finding], colours: Colours, out: &mut dyn Write) -> io::Result<()> {
    paragraph(out, "", &machine())?;
    disturbance().map_or(Ok(()), |other| paragraph(out, "  - ", &other))?;
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.verdict);
    for finding in sorted {
        let Finding { check, verdict, how, advice, study, .. } = finding;
        let value = finding
            .figure
            .map_or_else(String::new, |value| format!("{} {}", figure(value), finding.unit));
        let padded = colours.paint(tone(*verdict), &format!("{:<7}", verdict.name()));
        writeln!(out, "\n{}", format!("{padded}  {check:<17} {value}").trim_end())?;
        paragraph(out, "         ", how)?;
        if *verdict > Verdict::Unknown {
            paragraph(out, "      -> ", advice)?;
            paragraph(out, "         ", &format!("Explained by: tickless study {study} --live"))?;
        }
    }
    writeln!(out, "\n{}", summary(findings))
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Ok => Tone::Good,
        Verdict::Unknown => Tone::Faint,
        Verdict::Warn => Tone::Warning,
        Verdict::Bad => Tone::Bad,
    }
}

fn summary(findings: &[Finding]) -> String {
    let count = |verdict: Verdict| findings.iter().filter(|of| of.verdict == verdict).count();
    let all = [Verdict::Bad, Verdict::Warn, Verdict::Unknown, Verdict::Ok];
    let counts = all.map(|verdict| format!("{} {}", count(verdict), verdict.name()));
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    fn findings() -> [Finding; 2] {
        let of = |verdict, figure| Finding {
            check: "a-check",
            verdict,
            figure,
            unit: "things",
            how: "by, counting".to_string(),
            advice: "do it".to_string(),
            study: "rearm",
        };
        [of(Verdict::Bad, Some(2.5)), of(Verdict::Unknown, None)]
    }

    fn written(write: impl Fn(&[Finding], &mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&findings(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_bad_finding_is_last_with_its_advice() {
        let text = written(|findings, out| text(findings, Colours::Off, out));
        let [unknown, bad] = ["unknown  a-check", "bad      a-check           2.50 things"]
            .map(|line| text.find(line).unwrap_or_else(|| panic!("{line}: {text}")));
        assert!(unknown < bad, "{text}");
        assert_eq!(text.matches("-> do it").count(), 1, "{text}");
        assert!(text.contains("tickless study rearm") && !text.contains('\u{1b}'), "{text}");
        assert!(text.ends_with("1 bad, 0 warn, 1 unknown, 0 ok\n"), "{text}");
        let coloured = written(|findings, out| super::text(findings, Colours::On, out));
        assert!(coloured.contains("\u{1b}[31m"));
    }

    #[test]
    fn csv_and_json_have_every_finding() {
        let csv = written(|findings, out| findings.csv(out));
        assert_eq!(
            csv,
            "check,verdict,figure,unit,how,advice,study\n\
             a-check,bad,2.5,things,\"by, counting\",do it,rearm\n\
             a-check,unknown,,things,\"by, counting\",do it,rearm\n"
        );
        let json: serde_json::Value =
            serde_json::from_str(&written(|it, out| it.write(Format::Json, out))).unwrap();
        assert_eq!(json[0]["figure"], 2.5);
        assert!(json[1]["figure"].is_null() && json[1]["verdict"] == "unknown");
    }
}
