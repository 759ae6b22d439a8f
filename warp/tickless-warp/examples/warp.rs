//! Runs a program in virtual time, as `tickless warp` does: `warp [--freeze] PROGRAM ARGS...`.

#![allow(clippy::print_stderr)]

use std::ffi::OsString;
use std::process::ExitCode;
use tickless_warp::{Ended, Options, Pace, end_by, run};

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut options = Options::default();
    if words.first().is_some_and(|word| word == "--freeze") {
        words.remove(0);
        options.pace = Pace::Frozen;
    }
    let Some((program, args)) = words.split_first() else {
        eprintln!("warp: name a program");
        return ExitCode::from(2);
    };
    match run(program, args, &options, &mut |note| eprintln!("warp: {note}")) {
        Ok(outcome) => {
            let [passed, used] = [outcome.passed, outcome.used].map(|time| time.as_secs_f64());
            eprintln!("warp: {passed:.3} s passed, {used:.3} s used, {} jumps", outcome.jumps);
            match outcome.ended {
                Ended::Status(status) => ExitCode::from(status),
                Ended::Until => ExitCode::from(124),
                Ended::Signal(signal) => {
                    end_by(signal);
                    ExitCode::FAILURE
                }
            }
        }
        Err(error) => {
            eprintln!("warp: {error}");
            ExitCode::FAILURE
        }
    }
}
