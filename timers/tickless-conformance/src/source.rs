//! Writes a history as a Rust test of the timers, without the suite's judge.

use crate::fault::Fault;
use crate::history::Op;
use crate::play::{Calls, play_and_record};
use crate::timers::Timers;

/// Returns a test that makes the calls of `ops` up to the one that broke a promise, and ends with
/// an assertion of that promise, or a comment that names it. The calls are those of [`Timers`].
pub fn test_source<T: Timers>(ops: &[Op], fault: &Fault) -> String {
    let calls = Calls::default();
    let _ = play_and_record::<T>(ops, Some(&calls));
    let mut lines = vec![
        "let mut timers = TIMERS::new();".to_owned(),
        "let mut fired = Vec::new();".to_owned(),
    ];
    lines.append(&mut calls.into_inner());
    lines.push(match fault {
        Fault::Late { key, .. } | Fault::Lost { key, .. } => {
            format!("assert!(fired.contains(&{key}), \"{fault}\");")
        }
        Fault::Early { key, .. } | Fault::NotPending { key, .. } => {
            format!("assert!(!fired.contains(&{key}), \"{fault}\");")
        }
        Fault::NextEventLate { last, .. } => {
            format!("assert!(timers.next_event().is_some_and(|at| at <= {last}), \"{fault}\");")
        }
        Fault::NextEventForNothing { first: None, .. } => {
            "assert_eq!(timers.next_event(), None);".to_owned()
        }
        _ => format!("// {fault}."),
    });
    let body: String = lines.chunk_by(|line, next| line == next).map(repeated).collect();
    format!("#[test]\nfn keeps_its_promise() {{\n{body}}}\n")
}

/// Takes equal lines of the test. Returns a loop around one of them if there are three or more, and
/// otherwise the lines themselves.
fn repeated(lines: &[String]) -> String {
    match lines {
        [line, _, _, ..] => {
            format!("    for _ in 0..{} {{\n        {line}\n    }}\n", lines.len())
        }
        _ => lines.iter().map(|line| format!("    {line}\n")).collect(),
    }
}
