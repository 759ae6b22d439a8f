//! Tickless and its peers, side by side.
//!
//! All contenders of a case are measured in one run, in turn. Each figure is the median of several
//! samples with their spread, and a multiple of an uncontended atomic add in the same run, because
//! figures in ns do not carry over to other machines. The results of the operations are asserted,
//! their times are reported.

mod affinity;
#[expect(unsafe_code, reason = "an allocator")]
mod allocator;
mod cases;
mod child;
mod effort;
mod latency;
mod machine;
mod peers;
mod random;
mod report;
mod sample;
mod targets;
mod web;

use cases::{CASES, Case, Choice, Section};
use child::Running;
use clap::Parser;
use effort::Effort;
use report::Table;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures Tickless and its peers side by side.
#[derive(Parser)]
struct Options {
    /// Under a minute: fewer timers, fewer operations.
    #[arg(long)]
    quick: bool,
    /// Samples of each figure, instead of the default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Measures the peers in other languages too, whose programs are in this folder.
    #[arg(long, value_name = "FOLDER")]
    foreign: Option<PathBuf>,
    /// Measures tokio's alternative timers too, with this build of the program, which has
    /// `--cfg tokio_unstable`. It is a process of its own, which takes its samples in turn.
    #[arg(long, value_name = "PROGRAM")]
    twin: Option<PathBuf>,
    /// The cases of this part of the page.
    #[arg(long, value_enum, default_value_t = Section::Operations)]
    section: Section,
    /// Only these cases, of whatever section: W1 to W15, W4x.
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    only: Vec<String>,
    /// Only contenders with this in their name.
    #[arg(long, value_name = "TEXT")]
    peer: Option<String>,
    /// Does an operation of W15 only, without measuring it: the numbers of its row and column, and
    /// how many times. For a program that counts instructions.
    #[arg(long, value_name = "NUMBER", num_args = 3)]
    repeat: Option<Vec<usize>>,
    /// Puts the tables into this file, between the section's two `<!-- ... -->` lines.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(&[row, column, times]) = options.repeat.as_deref() {
        let name = cases::newcomer::repeat([row, column, times]);
        name.iter().for_each(|name| println!("{name}"));
        return if name.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let unknown = options.only.iter().find(|only| !CASES.iter().any(|case| is(case.0, only)));
    if let Some(unknown) = unknown {
        let known: Vec<&str> = CASES.iter().map(|case| case.0).collect();
        eprintln!("there is no case {unknown}; the cases are {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let effort = effort.with_repetitions(options.repetitions);
    let wanted = |case: &&Case| match &options.only[..] {
        [] => case.1 == options.section,
        only => only.iter().any(|only| is(case.0, only)),
    };
    let cases = CASES.iter().filter(wanted).collect();
    let quick = options.quick.then(|| "--quick".to_string());
    let repetitions = options.repetitions.map(|count| format!("--repetitions={count}"));
    let twin = options.twin.map(|twin| (twin, quick.into_iter().chain(repetitions).collect()));
    let choice = Choice { peer: options.peer, foreign: options.foreign, twin };
    let (_, text) = run(&effort, cases, &choice);
    print!("{text}");
    let Some(page) = &options.markdown else { return ExitCode::SUCCESS };
    match put_between(page, marks(options.section), &text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn is(id: &str, only: &str) -> bool {
    id.eq_ignore_ascii_case(only)
}

/// Returns the tables of these cases, and the text of the page.
fn run(effort: &Effort, cases: Vec<&Case>, choice: &Choice) -> (Vec<Table>, String) {
    let machine = machine::describe(choice.foreign.as_deref());
    // Start the libraries' threads before this thread is pinned, because they inherit its CPUs.
    if sample::IS_TWIN {
        println!("ready");
    }
    peers::sleepers::warm_up();
    peers::timeout::TIMERS.now();
    tickless::future::now();
    affinity::pin(0);
    let mut tables = Vec::new();
    let (first, rest): (Vec<&Case>, Vec<&Case>) =
        cases.into_iter().partition(|case| case.0 == cases::FIRST);
    for case in first.into_iter().chain(rest) {
        let has_tokio = !matches!(case.0, "W11" | "W13" | "W14");
        let twin = choice.twin.as_ref().filter(|_| has_tokio).map(|(program, arguments)| {
            let only = ["--only".to_string(), case.0.to_string()];
            affinity::unpin(); // It chooses its CPUs itself.
            let twin = Running::start(program, &[&only, &arguments[..]].concat());
            affinity::pin(0);
            twin
        });
        let (of_case, rows) = sample::beside(twin, || case.2(effort, choice));
        for mut table in of_case {
            table.add_rows(&rows);
            if !sample::IS_TWIN {
                eprintln!("{}", table.markdown(sample::unit()));
            }
            tables.push(table);
        }
    }
    tables.sort_by_key(|table| CASES.iter().rposition(|case| table.case.starts_with(case.0)));
    let unit = sample::unit();
    let text = report::markdown(&machine, &tables, unit) + &targets::markdown(&tables, unit);
    (tables, text)
}

fn put_between(path: &Path, [begin, end]: [&str; 2], tables: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| cannot("read", path, &e))?;
    let text = between_marks(&text, [begin, end], tables)
        .ok_or_else(|| format!("{} has no lines {begin} and {end}", path.display()))?;
    std::fs::write(path, text).map_err(|e| cannot("write", path, &e))
}

fn marks(section: Section) -> [&'static str; 2] {
    match section {
        Section::Operations => ["<!-- bench: begin -->\n", "<!-- bench: end -->\n"],
        Section::Futures => ["<!-- bench futures: begin -->\n", "<!-- bench futures: end -->\n"],
    }
}

fn between_marks(text: &str, [begin, end]: [&str; 2], tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{tables}\n{end}{after}"))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::ALTERNATIVE;

    /// Goal: every case keeps working. Method: run it, tiny; its own assertions decide.
    #[test]
    fn every_case_runs() {
        let (tables, text) = run(&Effort::TINY, CASES.iter().collect(), &Choice::default());
        assert!(tables.len() >= CASES.len());
        for case in CASES {
            assert!(text.contains(&format!("### {}: ", case.0)), "{} is shown", case.0);
        }
    }

    #[test]
    fn rows_of_another_build_follow_those_of_tokio() {
        let mut table = Table::new("W1", "pairs", "");
        ["ours", "tokio", "others"].iter().for_each(|name| table.note(name, ""));
        let row = format!("| tokio, {ALTERNATIVE} | 1 |");
        let page = format!("### W1: pairs\n| tokio | 2 |\n{row}\n### W2: pairs\n{row}\n");
        table.add_rows(&page);
        let text = table.markdown(sample::unit());
        let rows: Vec<&str> = text.lines().filter(|line| line.contains('o')).collect();
        assert_eq!(rows, ["| | how |  |", "| ours |  |", "| tokio |  |", &row, "| others |  |"]);
    }

    #[test]
    fn text_between_the_marks_is_replaced() {
        let page = include_str!("../../../docs/book/src/performance.md");
        for [begin, end] in [Section::Operations, Section::Futures].map(marks) {
            let text = format!("a\n{begin}old\n{end}b\n");
            let replaced = between_marks(&text, [begin, end], "new").expect("both are there");
            assert_eq!(replaced, format!("a\n{begin}\nnew\n{end}b\n"));
            assert_eq!(between_marks("a\n", [begin, end], "new"), None);
            assert!(between_marks(page, [begin, end], "new").is_some(), "the page has {begin}");
        }
    }
}
