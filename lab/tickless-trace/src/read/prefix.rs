//! Splits a line up to its event: task, CPU, context, time, name, and the text after it.
//!
//! One function reads the lines of all tools: it searches for a CPU in brackets that is followed by
//! an optional flags column and a time. The text before the CPU (task, pid, `pid/tid`, thread
//! group, file name) can have spaces and even brackets; its last number is the thread's.

use tickless_core::time::{CpuId, Ns};

use super::attributes::Context;
use super::fields::{decimal, find};
use super::problem::Cause;

/// The largest number of CPUs for which a Linux kernel can be built. A line with a higher CPU
/// number is damaged. If it were accepted, a replay would simulate all CPUs below it.
const CPUS_MAX: u64 = 8192;

pub(crate) struct Prefix<'a> {
    pub(crate) task: Task<'a>,
    pub(crate) cpu: CpuId,
    pub(crate) context: Context,
    pub(crate) time: Ns,
    /// The group of the event, such as `timer` in `timer:hrtimer_start`; only perf prints it.
    pub(crate) system: Option<&'a [u8]>,
    pub(crate) name: &'a [u8],
    /// The event's own text, without the spaces that pad the name.
    pub(crate) text: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Task<'a> {
    /// The number of the thread; 0 for the idle task, and if the line has no number.
    pub(crate) pid: u32,
    pub(crate) name: &'a [u8],
    /// The instance or file that trace-cmd prints before the task if it reads several.
    pub(crate) source: Option<&'a [u8]>,
}

impl<'a> Task<'a> {
    /// Reads `name-pid`, `name-pid (tgid)`, `name pid` or `name pid/tid`.
    fn of(text: &'a [u8]) -> Task<'a> {
        let mut text = text.trim_ascii();
        // Tasks are aligned to the right, so at least two spaces follow a name of a source.
        let source = find(text, b":  ").map(|colon| &text[..colon]);
        let source = source.filter(|name| !name.contains(&b' '));
        text = source.map_or(text, |name| text[name.len() + 1..].trim_ascii_start());
        if text.ends_with(b")")
            && let Some(open) = text.iter().rposition(|&byte| byte == b'(')
        {
            text = text[..open].trim_ascii_end();
        }
        let digits =
            |text: &[u8]| text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (name, pid) = text.split_at(text.len() - digits(text));
        let Some(pid) = decimal(pid).and_then(|pid| u32::try_from(pid).ok()) else {
            return Task::default();
        };
        let name = match name.strip_suffix(b"/") {
            Some(process) => process[..process.len() - digits(process)].trim_ascii_end(),
            None => name.strip_suffix(b"-").unwrap_or(name).trim_ascii_end(),
        };
        Task { pid, name, source }
    }
}

/// Splits a line into its parts. The error is why it has no event. O(length), no allocation.
pub(crate) fn split(line: &[u8]) -> Result<Prefix<'_>, Cause> {
    let mut cause = Cause::NotAnEvent;
    let mut rest = line;
    while let Some(open) = rest.iter().position(|&byte| byte == b'[') {
        rest = &rest[open + 1..];
        match after_bracket(rest) {
            Ok(prefix) => {
                let before = &line[..line.len() - rest.len() - 1];
                return Ok(Prefix { task: Task::of(before), ..prefix });
            }
            Err(Cause::NotAnEvent) => {}
            Err(specific) => cause = specific,
        }
    }
    Err(cause)
}

/// Reads the text behind a `[`. This `[` is before the CPU, or in a task's name.
fn after_bracket(text: &[u8]) -> Result<Prefix<'_>, Cause> {
    let close = text.iter().take(8).position(|&byte| byte == b']').ok_or(Cause::NotAnEvent)?;
    let cpu = decimal(&text[..close]).ok_or(Cause::NotAnEvent)?;

    let (mut word, mut rest) = next_word(&text[close + 1..]);
    let mut context = Context::NotRecorded;
    if is_flags_column(word) {
        context = Context::from_column(word);
        (word, rest) = next_word(rest);
    }
    let time = word.strip_suffix(b":").ok_or(Cause::NotAnEvent)?;
    let time = seconds(time).ok_or_else(|| match decimal(time) {
        // A whole number: the trace clock was `counter`, `x86-tsc` or the like.
        Some(_) => Cause::ClockNotInSeconds,
        None => Cause::NotAnEvent,
    })?;

    (word, rest) = next_word(rest);
    // Between time and name, `trace-cmd report --ts-diff` prints a time difference, and perf can
    // print the event's period.
    if word.starts_with(b"(+") || decimal(word).is_some() {
        (word, rest) = next_word(rest);
    }
    let name = word.strip_suffix(b":").filter(|name| !name.is_empty()).ok_or(Cause::NotAnEvent)?;
    let cpu = cpu_id(cpu).ok_or(Cause::CpuOutOfRange)?;
    let (system, name) = match name.iter().position(|&byte| byte == b':') {
        Some(colon) => (Some(&name[..colon]), &name[colon + 1..]),
        None => (None, name),
    };
    let text = rest.trim_ascii();
    Ok(Prefix { task: Task::default(), cpu, context, time, system, name, text })
}

pub(super) fn cpu_id(number: u64) -> Option<CpuId> {
    (number < CPUS_MAX).then_some(CpuId(number as u16))
}

fn next_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    // Most bytes are letters, for which one comparison is enough.
    let is_space = |byte: &u8| *byte <= b' ' && byte.is_ascii_whitespace();
    text.split_at(text.iter().position(is_space).unwrap_or(text.len()))
}

/// Returns whether `word` looks like ftrace's flags column, such as `d.h1.`: 4 characters before
/// Linux 5.18, 5 since, more on RT kernels.
fn is_flags_column(word: &[u8]) -> bool {
    let is_flag = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'#' | b'?');
    (4..=8).contains(&word.len()) && word.iter().all(is_flag)
}

/// Reads `3028.536010`: whole seconds and one to nine digits of fraction.
fn seconds(word: &[u8]) -> Option<Ns> {
    let dot = word.iter().position(|&byte| byte == b'.')?;
    let (whole, fraction) = (&word[..dot], &word[dot + 1..]);
    if fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let whole = decimal(whole)?.checked_mul(1_000_000_000)?;
    whole.checked_add(decimal(fraction)? * scale).map(Ns)
}
