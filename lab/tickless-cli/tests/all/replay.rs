//! What all commands share where their output is a pipe or a full disk. The tables of `replay` are
//! in `transcripts`.

use crate::run::{Ended, PROGRAM, path, prints, program};
use std::process::{Command, Stdio};

#[test]
fn a_closed_output_causes_no_panic_and_no_message() {
    for format in ["table", "json", "csv"] {
        let line = format!("replay traces/pipe-two-cpus.txt.gz --format {format}");
        let mut child = program(&line).spawn().unwrap();
        // The pipe's other end is closed long before the trace is read.
        drop(child.stdout.take());
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""), "{format}");
    }
    for (redirected, status, message) in [
        ("traces/idle.txt.gz >&-", 0, ""),
        ("traces/idle.txt.gz >/dev/full", 1, "tickless: cannot write the results: "),
        // Standard error is closed while there is something to write.
        ("nowhere 2>&-", 1, ""),
        ("nowhere 2>/dev/full", 1, ""),
    ] {
        let script = format!("'{PROGRAM}' replay {redirected}");
        let mut shell = Command::new("sh");
        let ended = Ended::of(shell.args(["-c", &script]).current_dir(path("")));
        assert!(ended.exits(status, &[]).err.starts_with(message), "{redirected}");
    }
}

#[test]
fn standard_input_is_a_trace() {
    let idle = std::fs::File::open(path("traces/idle.txt.gz")).unwrap();
    let piped = Ended::of(program("replay -").stdin(Stdio::from(idle))).exits(0, &[]).out;
    let named = prints("replay traces/idle.txt.gz");
    assert_eq!(piped, named.replacen("traces/idle.txt.gz", "standard input", 1));
}
