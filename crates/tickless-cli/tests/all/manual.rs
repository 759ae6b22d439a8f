//! Completions and man pages: made of the same source, whole, and good for what reads them.

use crate::run::{prints, stderr, stdout, tickless};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = prints(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names = list.lines().take_while(|line| !line.is_empty());
    // The rest of a description is indented further.
    let names = names.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_string).collect()
}

/// The output of a program for this input; none if there is no such program.
fn fed(program: &str, args: &[&str], text: &str) -> Option<Output> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

/// Goal: every command and an option of each is completed in each shell; bash can read it.
#[test]
fn completions_are_whole() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = prints(&["completions", shell]);
        for word in commands() {
            assert!(script.contains(&word), "{shell}: {word}");
        }
        for option in ["no-inference", "sensitivity", "histogram", "buffer", "strict"] {
            assert!(script.contains(option), "{shell}: {option}");
        }
        assert!(!script.contains("watch-recorder"), "what nobody should type is not offered");
    }
    let script = prints(&["completions", "bash"]);
    let output = fed("bash", &["-n"], &script).expect("bash is there");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    // And it completes.
    let ask = "\nCOMP_WORDS=(tickless doc); COMP_CWORD=1; _tickless tickless doc tickless\n\
               echo \"${COMPREPLY[@]}\"\n";
    let output = fed("bash", &["--norc"], &(script + ask)).unwrap();
    assert_eq!(stdout(&output).trim(), "doctor");
}

/// Goal: there is a page for the program and for each command, with its examples, and what
/// formats pages has nothing to complain about.
#[test]
fn man_pages_are_whole() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = std::fs::remove_dir_all(&dir);
    assert_eq!(prints(&["man", "--dir", dir.to_str().unwrap()]), "");
    let mut names: Vec<String> =
        commands().iter().map(|command| format!("tickless-{command}.1")).collect();
    names.push("tickless.1".to_string());
    names.sort();
    let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut found: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, names);
    for name in names {
        let page = std::fs::read_to_string(dir.join(&name)).unwrap();
        for section in [".TH", ".SH NAME", ".SH SYNOPSIS", "Examples:"] {
            assert!(page.contains(section), "{name}: {section}");
        }
        for formatter in [
            ["groff", "-man", "-ww", "-z", "-Tutf8"].as_slice(),
            &["mandoc", "-T", "lint", "-W", "error"],
        ] {
            let Some(output) = fed(formatter[0], &formatter[1..], &page) else { continue };
            let complaint = stderr(&output);
            assert!(output.status.success() && complaint.is_empty(), "{name}: {complaint}");
        }
        let command = name.trim_start_matches("tickless").trim_end_matches(".1");
        let args = [vec!["man"], command.split('-').filter(|word| !word.is_empty()).collect()];
        assert_eq!(prints(&args.concat()), page, "{name}");
    }
}

/// Goal: each command's help has examples, fits a terminal, and states the exit status where it is
/// more than success or failure.
#[test]
fn all_help_has_examples() {
    for command in commands() {
        let help = prints(&["help", &command]);
        assert_eq!(prints(&[&command, "--help"]), help);
        assert!(help.contains(&format!("tickless {command}")), "{command}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        let has_status = !["completions", "man"].contains(&command.as_str());
        assert_eq!(help.contains("Exit status: "), has_status, "{command}: {help}");
        let words: &[&str] = match command.as_str() {
            "replay" => &["traces/nginx.txt.gz\n", "--no-inference", "--strict", "restart-aware"],
            "study" => &["study rearm --live\n", "--seed", "--cpus"],
            "latency" => &["--histogram", "--limit"],
            _ => &[],
        };
        for word in words.iter().chain(&["Examples:\n  "]) {
            assert!(help.contains(word), "{command}, {word}: {help}");
        }
    }
    assert!(prints(&["--help"]).contains("Examples:\n  tickless replay traces/nginx.txt.gz\n"));
    assert!(prints(&["--version"]).starts_with("tickless "));
}

#[test]
fn an_unknown_command_has_no_page() {
    let output = tickless(&["man", "nonsense"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("tickless help"));
    let output = tickless(&["man", "--dir", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--dir"));
}
