//! Completions and man pages: made of the same source, whole, and good for what reads them.

use crate::run::{Ended, path, prints};
use std::io::Write;
use std::process::{Command, Stdio};

fn commands() -> Vec<String> {
    let help = prints("--help");
    let (_, list) = help.split_once("Commands:\n").unwrap();
    // The rest of a description is indented further.
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_string).collect()
}

/// Runs a program with this input. It must succeed without messages. Returns its output; none if
/// there is no such program.
fn fed(line: &str, text: &str) -> Option<String> {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next()?);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap()).exits(0, &[]);
    assert_eq!(ended.err, "", "{line}");
    Some(ended.out)
}

#[test]
fn completions_are_whole() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = prints(&format!("completions {shell}"));
        let options = ["no-inference", "sensitivity", "histogram", "buffer", "strict"];
        for word in commands().iter().map(String::as_str).chain(options) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("watch-recorder"), "an internal command is offered");
    }
    let script = prints("completions bash");
    fed("bash -n", &script).expect("bash is there");
    // And it completes.
    let ask = "\nCOMP_WORDS=(tickless doc); COMP_CWORD=1; _tickless tickless doc tickless\n\
               echo \"${COMPREPLY[@]}\"\n";
    assert_eq!(fed("bash --norc", &(script + ask)).as_deref(), Some("doctor\n"));
}

#[test]
fn man_pages_are_whole() {
    let _ = std::fs::remove_dir_all(path("man"));
    assert_eq!(prints("man --dir man"), "");
    let commands = commands();
    let files = std::fs::read_dir(path("man")).unwrap();
    assert_eq!(files.count(), commands.len() + 1);
    for command in commands.iter().map(String::as_str).chain([""]) {
        let name = format!("tickless-{command}").trim_end_matches('-').to_string();
        let page = std::fs::read_to_string(path("man").join(format!("{name}.1"))).unwrap();
        for section in [".TH", ".SH NAME", ".SH SYNOPSIS", "Examples:"] {
            assert!(page.contains(section), "{name}: {section}");
        }
        fed("groff -man -ww -z -Tutf8", &page);
        fed("mandoc -T lint -W error", &page);
        assert_eq!(prints(&format!("man {command}")), page, "{name}");
    }
}

#[test]
fn all_help_has_examples() {
    for command in commands() {
        let help = prints(&format!("help {command}"));
        assert_eq!(prints(&format!("{command} --help")), help);
        assert!(help.contains("Examples:\n  ") && help.contains(&format!("tickless {command}")));
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(help.contains("docs/book/src/symptoms.md"), "{help}");
        let is_maker = ["completions", "man"].contains(&command.as_str());
        assert_ne!(help.contains("Exit status: "), is_maker, "{command}: {help}");
        let formats = ["--format", "- table:", "- json:", "- csv:", "[default: table]"];
        let has = formats.map(|word| help.contains(word));
        let has_results = !is_maker && !["report", "record", "sweep"].contains(&command.as_str());
        assert_eq!(has, [has_results; 5], "{command}: {help}");
    }
    for (command, words) in [
        ("replay", &["traces/nginx.txt.gz\n", "--no-inference", "--strict", "restart-aware"][..]),
        ("study", &["study rearm --live\n", "--seed", "--cpus"]),
        ("latency", &["--histogram", "--limit"]),
    ] {
        let help = prints(&format!("help {command}"));
        let missing = words.iter().find(|word| !help.contains(**word));
        assert_eq!(missing, None, "{command}: {help}");
    }
    assert!(prints("--help").contains("Examples:\n  tickless replay traces/nginx.txt.gz\n"));
    assert!(prints("--version").starts_with("tickless "));
}
