//! Writes a history as a Rust test that runs without this suite.

use crate::fault::Fault;
use crate::history::Op;
use crate::play::{Calls, What, play_and_record};
use crate::timers::Timers;

/// Returns a test that makes the calls of `ops` up to the one that broke a promise, and ends with
/// an assertion of that promise, or a comment that names it.
pub fn test_source<T: Timers>(ops: &[Op], fault: &Fault) -> String {
    let source = T::source();
    let calls = Calls::default();
    let _ = play_and_record::<T>(ops, &calls);
    let mut lines: Vec<String> = source.new.lines().map(str::to_owned).collect();
    for call in calls.borrow().iter() {
        let (template, key, deadline) = match call.what {
            What::Arm { key, deadline } => (source.arm, key, deadline),
            What::PushOut { key, deadline } => (source.push_out, key, deadline),
            What::Cancel { key } => (source.cancel, key, call.now),
            What::Advance { by } => (source.advance, 0, call.now + by),
        };
        let filled = template
            .replace("{key}", &key.to_string())
            .replace("{deadline}", &deadline.to_string())
            .replace("{delay}", &deadline.saturating_sub(call.now).to_string())
            .replace("{by}", &deadline.saturating_sub(call.now).to_string())
            .replace("{now}", &deadline.to_string());
        let comment = call.inside.map(|key| format!("// In the callback of timer {key}: "));
        let prefix = comment.unwrap_or_default();
        lines.extend(filled.lines().map(|line| format!("{prefix}{line}")));
    }
    let next = source.next_event;
    lines.push(match fault {
        Fault::Late { key, .. } | Fault::Lost { key, .. } => {
            format!("assert!(fired.contains(&{key}), \"{fault}\");")
        }
        Fault::Early { key, .. } | Fault::NotPending { key, .. } => {
            format!("assert!(!fired.contains(&{key}), \"{fault}\");")
        }
        Fault::NextEventLate { last, .. } => {
            format!("assert!({next}.is_some_and(|at| at <= {last}), \"{fault}\");")
        }
        Fault::NextEventForNothing { first: None, .. } => format!("assert_eq!({next}, None);"),
        _ => format!("// {fault}."),
    });
    let body: String = lines.chunk_by(|line, next| line == next).map(repeated).collect();
    format!("#[test]\nfn keeps_its_promise() {{\n{body}}}\n")
}

/// Returns a line of the test, or a loop if the line follows itself more than twice.
fn repeated(lines: &[String]) -> String {
    match lines {
        [line, _, _, ..] => {
            format!("    for _ in 0..{} {{\n        {line}\n    }}\n", lines.len())
        }
        _ => lines.iter().map(|line| format!("    {line}\n")).collect(),
    }
}
