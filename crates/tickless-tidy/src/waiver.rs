//! Inline exceptions: `// tidy: allow(rule): reason`, on the line it excuses or right above.
//!
//! Only the rules in [`WAIVABLE`] take one. An exception without a reason, for another rule,
//! or with nothing left to excuse is a breach itself.

use crate::source::SourceFile;
use crate::{Finding, banned, names};

/// The rules that a line may be excused from.
pub const WAIVABLE: &[&[&str]] = &[banned::RULES, names::RULES];

const RULE: &str = "waiver";
const MARK: &str = "// tidy:";

struct Waiver<'a> {
    /// Where the exception stands.
    line: usize,
    /// The line that it excuses.
    excused: usize,
    rule: &'a str,
}

impl Waiver<'_> {
    fn excuses(&self, finding: &Finding) -> bool {
        finding.line == self.excused && finding.rule == self.rule
    }
}

/// Drops the findings that the file excuses, and adds those about its excuses.
pub fn settle(file: &SourceFile, findings: Vec<Finding>) -> Vec<Finding> {
    let (mut waivers, mut kept) = (Vec::new(), Vec::new());
    for (line, text) in file.numbered() {
        let Some(text) = text.comment.trim_start().strip_prefix(MARK) else {
            continue;
        };
        match rule_of(text) {
            Some(rule) => waivers.push(Waiver { line, excused: excused_line(file, line), rule }),
            None => kept.push(file.finding(
                line,
                RULE,
                "not an exception that tidy understands",
                "write `// tidy: allow(rule): reason` with a rule that takes exceptions",
            )),
        }
    }
    let stale = waivers.iter().filter(|waiver| !findings.iter().any(|f| waiver.excuses(f)));
    kept.extend(stale.map(|waiver| {
        let what = format!("nothing here breaks `{}` any more", waiver.rule);
        file.finding(waiver.line, RULE, what, "drop the exception")
    }));
    let counts = |finding: &Finding| !waivers.iter().any(|waiver| waiver.excuses(finding));
    kept.extend(findings.into_iter().filter(counts));
    kept
}

/// The rule that ` allow(rule): reason` excuses from.
fn rule_of(text: &str) -> Option<&str> {
    let (rule, reason) = text.trim_start().strip_prefix("allow(")?.split_once("):")?;
    let known = WAIVABLE.iter().any(|rules| rules.contains(&rule));
    (known && !reason.trim().is_empty()).then_some(rule)
}

/// The comment's own line if code stands there, else the next line of code below.
fn excused_line(file: &SourceFile, number: usize) -> usize {
    if file.lines[number - 1].has_code() {
        return number;
    }
    let mut below = file.numbered().skip(number);
    let code = below.find(|(_, line)| line.has_code() && !line.is_attribute());
    code.map_or(number, |(below, _)| below)
}

#[cfg(test)]
mod tests {
    use crate::SourceFile;

    /// The lines and rules of what is wrong with this text.
    fn check(text: &str) -> Vec<(usize, &'static str)> {
        let file = SourceFile::new("crates/tickless/src/a.rs", &format!("//! A.\n{text}"));
        super::super::check_file(&file).iter().map(|f| (f.line, f.rule)).collect()
    }

    #[test]
    fn a_reasoned_exception_excuses_its_line_only() {
        let above = "// tidy: allow(unwrap): the lock cannot be poisoned, nothing panics\n// x\n\
                     #[inline]\na.unwrap();\nb.unwrap();";
        assert_eq!(check(above), [(6, "unwrap")]);
        assert_eq!(check("a.unwrap(); // tidy: allow(unwrap): checked above"), []);
        assert_eq!(check("// tidy: allow(bool-parameter): C\npub fn a(b: bool) {}"), []);
    }

    #[test]
    fn an_exception_without_a_reason_does_not_count() {
        let bare = check("a.unwrap(); // tidy: allow(unwrap):");
        assert_eq!(bare, [(2, "waiver"), (2, "unwrap")]);
    }

    #[test]
    fn an_exception_from_a_strict_rule_does_not_count() {
        let strict = check("// tidy: allow(unsafe-address): please\n// SAFETY: a.\nunsafe { b() }");
        assert_eq!(strict, [(2, "waiver"), (4, "unsafe-address")]);
    }

    #[test]
    fn a_stale_exception_is_found() {
        assert_eq!(check("// tidy: allow(panic): it was here once\na();"), [(2, "waiver")]);
    }
}
