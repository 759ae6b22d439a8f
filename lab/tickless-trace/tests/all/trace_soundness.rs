//! Traces that read well and cannot be right: each damage is reported, and no sound trace is.

use crate::support::{SAMPLES, assert_documented, parsed, random, replay, sample_text, twice};
use std::fmt::Write;
use tickless_trace::read::Cause;
use tickless_trace::replay::{Comparison, Verdict};

fn is_event(line: &str) -> bool {
    line.contains("] ") && !line.starts_with('#')
}

fn events(text: &str, mut change: impl FnMut(usize, &str) -> Vec<String>) -> String {
    let mut out = String::new();
    let mut number = 0;
    for line in text.lines() {
        if is_event(line) {
            number += 1;
            change(number, line).iter().for_each(|line| writeln!(out, "{line}").unwrap());
        } else {
            writeln!(out, "{line}").unwrap();
        }
    }
    out
}

fn at(line: &str, time: &str) -> String {
    let begin = line.find(": ").unwrap();
    let from = line[..begin].rfind(' ').unwrap() + 1;
    format!("{}{time}{}", &line[..from], &line[begin..])
}

fn shuffled(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().filter(|line| is_event(line)).collect();
    let mut state = 7_u64;
    for at in (1..lines.len()).rev() {
        lines.swap(at, random(&mut state) as usize % (at + 1));
    }
    let mut lines = lines.into_iter();
    events(text, |_, _| vec![lines.next().unwrap().to_string()])
}

/// Removes every tenth line, which the header does not show.
fn thinned(text: &str) -> String {
    let text = text.replace("entries-in-buffer", "entries");
    events(&text, |number, line| {
        // The interval must not match the periods in the trace.
        let is_lost = ((number * 2_654_435_761) >> 8) % 10 == 0;
        if is_lost { Vec::new() } else { vec![line.to_string()] }
    })
}

/// Moves the second half 31 years ahead.
fn thirty_one_years(text: &str) -> String {
    let half = text.lines().filter(|line| is_event(line)).count() / 2;
    events(text, |number, line| {
        let begin = line.find(": ").unwrap();
        let time = line[..begin].rsplit(' ').next().unwrap();
        let later = time.split_once('.').unwrap();
        let seconds: u64 = later.0.parse().unwrap();
        let seconds = if number > half { seconds + 31 * 365 * 86_400 } else { seconds };
        vec![at(line, &format!("{seconds}.{}", later.1))]
    })
}

fn without_time(text: &str) -> String {
    events(text, |_, line| vec![at(line, "0.000000")])
}

fn wrong_hz(text: &str) -> String {
    text.replace("HZ=250", "HZ=1000")
}

type Damage = (&'static str, fn(&str) -> String, fn(&Cause) -> bool);

const DAMAGES: [Damage; 6] = [
    ("every line twice", twice, |cause| matches!(cause, Cause::Repeated { .. })),
    ("shuffled", shuffled, |cause| matches!(cause, Cause::CpuOutOfOrder { .. })),
    ("one line in ten missing", thinned, |cause| matches!(cause, Cause::HalvesMissing { .. })),
    ("31 years", thirty_one_years, |cause| matches!(cause, Cause::TimeJump { .. })),
    ("no time", without_time, |cause| matches!(cause, Cause::NoTime)),
    ("wrong HZ", wrong_hz, |cause| matches!(cause, Cause::HzContradicted { events: 250, .. })),
];

/// Goal: each damage of each trace is reported, and there is no agreement.
/// Method: the committed traces. Two are too short to show a tick rate.
#[test]
fn damage_is_reported() {
    for name in SAMPLES {
        let text = sample_text(name);
        for (damage, change, is_cause) in DAMAGES {
            if damage == "wrong HZ" && ["nginx", "pipe-two-cpus"].contains(&name) {
                continue;
            }
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
    for (damage, change, _) in DAMAGES.iter().filter(|(damage, ..)| *damage != "wrong HZ") {
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
