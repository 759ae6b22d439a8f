//! Traces that read well and cannot be right: each damage is reported, and no sound trace is.

use crate::support::{SAMPLES, assert_documented, parsed, random, replay, sample_text, twice};
use tickless_trace::read::Cause;
use tickless_trace::replay::{Comparison, Verdict};

fn is_event(line: &str) -> bool {
    line.contains("] ") && !line.starts_with('#')
}

fn events(text: &str, mut change: impl FnMut(usize, &str) -> Option<String>) -> String {
    let mut number = 0;
    let changed = text.lines().filter_map(|line| {
        number += usize::from(is_event(line));
        if is_event(line) { change(number, line) } else { Some(line.to_string()) }
    });
    changed.map(|line| line + "\n").collect()
}

fn shuffled(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().filter(|line| is_event(line)).collect();
    let mut state = 7_u64;
    for at in (1..lines.len()).rev() {
        lines.swap(at, random(&mut state) as usize % (at + 1));
    }
    let mut lines = lines.into_iter();
    events(text, |_, _| lines.next().map(str::to_string))
}

/// Removes every tenth line, which the header does not show.
fn thinned(text: &str) -> String {
    let text = text.replace("entries-in-buffer", "entries");
    events(&text, |number, line| {
        // The interval must not match the periods in the trace.
        let is_lost = ((number * 2_654_435_761) >> 8) % 10 == 0;
        (!is_lost).then(|| line.to_string())
    })
}

type Damage = (&'static str, fn(&str) -> String, fn(&Cause) -> bool);

const DAMAGES: [Damage; 3] = [
    ("every line twice", twice, |cause| matches!(cause, Cause::Repeated { .. })),
    ("shuffled", shuffled, |cause| matches!(cause, Cause::CpuOutOfOrder { .. })),
    ("one line in ten missing", thinned, |cause| matches!(cause, Cause::HalvesMissing { .. })),
];

/// Goal: each damage of each trace is reported, and there is no agreement.
/// Method: the committed traces.
#[test]
fn damage_is_reported() {
    for name in SAMPLES {
        let text = sample_text(name);
        for (damage, change, is_cause) in DAMAGES {
            let changed = change(&text);
            assert_ne!(changed, text, "{name}, {damage}");
            let trace = parsed(&changed);
            let mut found = trace.problems.damage();
            let told = || trace.messages().collect::<Vec<_>>();
            assert!(
                found.any(|problem| is_cause(&problem.cause)),
                "{name}, {damage}: {:?}",
                told()
            );
        }
    }
    // A replay takes long, so only one is replayed.
    let text = sample_text("pipe-two-cpus");
    for (damage, change, _) in DAMAGES {
        let summary = replay(&change(&text));
        assert!(!summary.agreement.is_some_and(|agreement| agreement.agrees), "{damage}");
    }
}

#[test]
fn documented_verdicts_on_policies_are_current() {
    for name in SAMPLES {
        let summary = replay(&sample_text(name));
        let agreement = summary.agreement.as_ref().unwrap();
        let told = |other: &Comparison| {
            let by = format!("{} {}", other.differs_by, other.differs_in.replace('_', " "));
            match (other.verdict, other.differs_by) {
                (Verdict::RuledOut, _) => format!("ruled out, by {by}"),
                (Verdict::FitsBetter, _) => format!("fits better, by {by}"),
                (_, 0) => "cannot tell: the same counts".to_string(),
                _ => format!("cannot tell: {by} apart"),
            }
        };
        let [eager, lazy] = [0, 1].map(|at| told(&agreement.others[at]));
        let row = format!("| {name} | {} | {eager} | {lazy} |", agreement.uncertain);
        assert_documented(&row);
    }
}
