//! The command line.
//!
//! Results go to standard output, everything else to standard error. Neither being closed is a
//! reason to panic: who reads our output may have seen enough.

use crate::doctor::{self, args::DoctorArgs};
use crate::hangup;
use crate::late::{self, args::LateArgs, args::LateError};
use crate::latency::args::LatencyArgs;
use crate::machines::args::{MachinesArgs, Outcome};
use crate::manual::{CompletionsArgs, ManArgs, ManualError};
use crate::output::Colours;
use crate::record::args::RecordArgs;
use crate::replay::{self, args::ReplayArgs};
use crate::report::args::ReportArgs;
use crate::study::{self, args::StudyArgs};
use clap::{CommandFactory, Parser, Subcommand};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use tickless_core::rearm::Policy;
use tickless_lab::measure::MeasureError;
use tickless_lab::study::{Study, StudyError};
use tickless_trace::read::{Trace, TraceError};
use tickless_trace::record::{self, RecordError};
use tickless_trace::replay::{Comparison, Inference, Measure, Summary, Told, summarise};

/// Measures, explains and predicts what timers cost.
#[derive(Debug, Parser)]
#[command(name = "tickless", version, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    tickless replay traces/nginx.txt.gz\n  \
    sudo tickless record -- make test && tickless replay trace.txt.gz\n  \
    tickless report\n  \
    tickless study rearm --live\n  \
    tickless latency -S -D 5\n  \
    tickless help study")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// All five studies, simulated and live, on one page
    ///
    /// Writes report.html, which needs nothing but itself, and report.json with the same figures
    /// for programs. About two minutes. A study that fails is shown as failed, with what to do;
    /// the others go on.
    #[command(after_help = "Examples:\n  \
        tickless report\n  \
        tickless report --quick --out reports\n  \
        tickless report --only clock cancel --full --out timers.html\n\n\
        Exit status: 0 if all studies ran, 1 if one failed or the files could not be written,\n\
        2 for a wrong command line, 130 if interrupted; then nothing is written.")]
    Report(ReportArgs),
    /// Drive a recorded kernel timer trace through the timer core, once for each policy
    ///
    /// Shows how often the event device would have been programmed, how many wakeups would have
    /// found nothing to do, and how late timers would have fired, beside what the trace itself
    /// recorded. Reads ftrace text, plain or gzip, and what `trace-cmd report` and `perf script`
    /// print.
    #[command(after_help = "Examples:\n  \
        tickless replay traces/nginx.txt.gz\n  \
        tickless replay trace.txt --policy lazy --format json\n  \
        trace-cmd report > trace.txt && tickless replay trace.txt --strict\n\n\
        Exit status: 0 if replayed, 1 if a trace cannot be used or the results not written,\n\
        2 for a wrong command line, 3 with --strict if the replay is more than 5 % off what was\n\
        recorded, if the trace is damaged, or if no device writes were recorded.")]
    Replay(ReplayArgs),
    /// Record what the kernel does with its timers, for replay
    ///
    /// Records the timer events of all CPUs, the timer interrupts, and what is written to the
    /// timer device, from tracefs (root). Other users of tracing are left alone, and nothing is
    /// left behind, however it ends. Ctrl-C ends it early, with what there is.
    #[command(after_help = "Examples:\n  \
        sudo tickless record\n  \
        sudo tickless record -D 10s --buffer 64M -o busy.txt.gz\n  \
        sudo tickless record -o test.txt -e sched:sched_switch -- make test\n  \
        tickless replay trace.txt.gz\n\n\
        Exit status: 0 if recorded, 1 if that was not possible or the file not written,\n\
        2 for a wrong command line; with a command that ran, the status of the command,\n\
        128 and the number of the signal if one ended it.")]
    Record(RecordArgs),
    /// Measure a mechanism beside the behaviour that it replaced
    ///
    /// Each study is named after the mechanism. Every figure is labelled: published (by the authors
    /// of the mechanism, on their machine), calibrated, predicted, or live (measured now: the
    /// median of the repetitions, with the least and the greatest).
    #[command(after_help = "Examples:\n  \
        tickless study rearm --live\n  \
        tickless study rearm --live --quick --format json\n  \
        tickless study cancel --live --cpus 2,16,256\n  \
        tickless study deferred --live --full --format csv\n\n\
        Exit status: 0 if measured, 1 if that was not possible or the results not written,\n\
        2 for a wrong command line, 3 with --strict if a figure is not in its band,\n\
        130 if interrupted.")]
    Study(StudyArgs),
    /// Why threads that slept ran late: what each part of the way was spent on
    ///
    /// Follows each sleep from its deadline over the interrupt and the callback to the thread that
    /// runs, and says of each hop how long it took and what the CPU did meanwhile. Takes a trace,
    /// or watches this machine (root). What matters most stands last.
    #[command(after_help = "Examples:\n  \
        sudo tickless late --watch -D 10s --threshold 500us\n  \
        sudo tickless record --events late -o slow.txt.gz -D 30s\n  \
        tickless late slow.txt.gz --format json\n\n\
        Exit status: 0 if explained, 1 if there is no trace to be had or the results not written,\n\
        2 for a wrong command line.")]
    Late(LateArgs),
    /// How late threads wake: our timers beside the kernel's own sleeps
    ///
    /// Like cyclictest: a thread sleeps until a point in time, looks at the clock when it wakes,
    /// and sleeps until an interval later. The sleepers are measured in turn, so that what
    /// disturbs one disturbs all. Ctrl-C ends it early, with what there is.
    #[command(after_help = "Examples:\n  \
        tickless latency\n  \
        tickless latency -S -p 90 -i 500 -D 1m -h 100\n  \
        tickless latency --sleeper hrtimer,timeout -l 1000 --json\n  \
        tickless latency -q -D 5 --limit p99=200us --limit hrtimer.max=5ms\n\n\
        Exit status: 0 if measured, 1 if that was not possible or the results not written,\n\
        2 for a wrong command line or if there was nothing to hold a limit against,\n\
        3 if a limit is exceeded.")]
    Latency(LatencyArgs),
    /// The simulated machines: where their numbers come from, and how well they predict this one
    ///
    /// Without more, the list. With a name, every number of that machine: published or measured,
    /// assumed with a range, or fitted to a cell.
    #[command(after_help = "Examples:\n  \
        tickless machines\n  \
        tickless machines ivybridge-ex-16s\n  \
        tickless machines --measure -o here.toml\n  \
        tickless machines --validate\n  \
        tickless machines --fuzz 1 --histories 1000\n\n\
        Exit status: 0 if shown, 1 if that was not possible or a history broke a rule,\n\
        2 for a wrong command line, 3 with --strict if a prediction is not in its band,\n\
        130 if interrupted.")]
    Machines(MachinesArgs),
    /// What this machine pays for its timers without need, and what to do about it
    ///
    /// Looks for some seconds: at the clock source, device writes, cancels, idle ticks, timers that
    /// expire together and late sleeps. Says of each the figure, how it was obtained, what to do,
    /// and which study explains it. As root it records the kernel's timers and sees more; what
    /// could not be seen is unknown, with the reason. The machine is left as it was.
    #[command(after_help = "Examples:\n  \
        sudo tickless doctor\n  \
        tickless doctor -D 10s --check idle-ticks,clock-source\n  \
        sudo tickless doctor --strict --format json\n\n\
        Exit status: 0 if nothing is bad (--strict: nor worth a look), 1 if the results cannot\n\
        be written, 2 for a wrong command line, 3 if something is, 130 if interrupted.")]
    Doctor(DoctorArgs),
    /// Print what a shell needs to complete this program's commands and options
    #[command(after_help = "Examples:\n  \
        tickless completions bash > ~/.local/share/bash-completion/completions/tickless\n  \
        tickless completions zsh > ~/.zfunc/_tickless\n  \
        tickless completions fish > ~/.config/fish/completions/tickless.fish")]
    Completions(CompletionsArgs),
    /// Print a man page, or write all of them
    #[command(after_help = "Examples:\n  \
        tickless man | man -l -\n  \
        tickless man replay | man -l -\n  \
        tickless man --dir ~/.local/share/man/man1")]
    Man(ManArgs),
}

/// Why the program ends without having done what it was asked to do.
#[derive(Debug)]
enum Failure {
    Trace(TraceError),
    Record(RecordError),
    Study(StudyError),
    Late(LateError),
    Latency(MeasureError),
    Report(io::Error),
    Manual(ManualError),
    Output(io::Error),
}

const WRONG_COMMAND_LINE: u8 = 2;
/// What was measured is not what it should be.
const NOT_AS_WANTED: u8 = 3;

/// The whole program.
pub fn main() -> ExitCode {
    if record::watch_if_asked() {
        return ExitCode::SUCCESS;
    }
    hangup::respect_nohup();
    let done = match Cli::parse().command {
        Command::Report(args) => run_report(&args),
        Command::Replay(args) => run_replay(&args),
        Command::Record(args) => run_record(&args),
        Command::Study(args) => run_study(&args),
        Command::Late(args) => run_late(&args),
        Command::Latency(args) => run_latency(&args),
        Command::Machines(args) => run_machines(&args),
        Command::Doctor(args) => run_doctor(&args),
        Command::Completions(args) => print_bytes(&args.script(Cli::command())),
        Command::Man(args) => run_man(&args),
    };
    match done {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Output(error)) => {
            complain(format_args!("cannot write the results: {error}; send them to another place"));
            ExitCode::FAILURE
        }
        Err(Failure::Report(error)) => {
            complain(format_args!("cannot write the report: {error}; choose another --out"));
            ExitCode::FAILURE
        }
        Err(Failure::Late(error)) => {
            complain(error);
            ExitCode::FAILURE
        }
        Err(Failure::Latency(error)) => {
            complain(error);
            ExitCode::FAILURE
        }
        Err(Failure::Manual(error)) => {
            complain(error);
            ExitCode::FAILURE
        }
        Err(Failure::Trace(error)) => {
            complain(error);
            ExitCode::FAILURE
        }
        Err(Failure::Record(error)) => {
            complain(error);
            ExitCode::FAILURE
        }
        Err(Failure::Study(error)) => {
            complain(&error);
            if error.is_usage() { ExitCode::from(WRONG_COMMAND_LINE) } else { ExitCode::FAILURE }
        }
    }
}

fn run_report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let written = args.run().map_err(Failure::Report)?;
    print(|out| written.show(out))?;
    let failed = written.report.failures().next().is_some();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let trace = Trace::read(&args.trace).map_err(Failure::Trace)?;
    trace.messages().for_each(complain);
    let policies: Vec<Policy> = match args.policy.as_slice() {
        [] => Policy::ALL.to_vec(),
        some => some.iter().map(|&policy| policy.into()).collect(),
    };
    let inference = if args.no_inference { Inference::Off } else { Inference::On };
    let summary = summarise(&trace, &policies, inference);
    print(|out| replay::show::show(&summary, args.format, out))?;
    Ok(if args.strict { judge(&summary) } else { ExitCode::SUCCESS })
}

fn run_record(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let recorded = args.run(&|note| complain(note)).map_err(Failure::Record)?;
    complain(&recorded);
    recorded.complaint().iter().for_each(complain);
    Ok(recorded.command_status().map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn run_study(args: &StudyArgs) -> Result<ExitCode, Failure> {
    let study = args.run().map_err(Failure::Study)?;
    print(|out| study::show::show(&study, args.format, out))?;
    Ok(if args.strict { strictly(&study) } else { ExitCode::SUCCESS })
}

fn run_machines(args: &MachinesArgs) -> Result<ExitCode, Failure> {
    match args.run().map_err(Failure::Study)? {
        Outcome::Text(text) => print(|out| out.write_all(&text))?,
        Outcome::Study(study, format) => print(|out| study::show::show(&study, format, out))?,
        Outcome::Strict(study, format) => {
            print(|out| study::show::show(&study, format, out))?;
            return Ok(strictly(&study));
        }
        Outcome::Broken(violation) => {
            complain(violation);
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The verdict of `--strict` on a study.
fn strictly(study: &Study) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for cell in study.outside() {
        complain(format_args!("{} is {} {}, outside its band", cell.id, cell.value, cell.unit));
        code = ExitCode::from(NOT_AS_WANTED);
    }
    code
}

fn run_late(args: &LateArgs) -> Result<ExitCode, Failure> {
    let late = args.run(&|message| complain(message)).map_err(Failure::Late)?;
    print(|out| late::show::show(&late, args.format, out))?;
    Ok(ExitCode::SUCCESS)
}

fn run_latency(args: &LatencyArgs) -> Result<ExitCode, Failure> {
    let latency = args.run().map_err(Failure::Latency)?;
    print(|out| latency.show(out))?;
    let (unknown, exceeded) = (latency.unknown(), latency.exceeded());
    exceeded.iter().chain(&unknown).for_each(complain);
    Ok(match (exceeded.is_empty(), unknown.is_empty()) {
        (false, _) => ExitCode::from(NOT_AS_WANTED),
        (true, false) => ExitCode::from(WRONG_COMMAND_LINE),
        (true, true) => ExitCode::SUCCESS,
    })
}

fn run_doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let findings = args.run();
    print(|out| doctor::show::show(&findings, args.format, Colours::of_stdout(), out))?;
    Ok(if args.is_failed(&findings) { ExitCode::from(NOT_AS_WANTED) } else { ExitCode::SUCCESS })
}

fn run_man(args: &ManArgs) -> Result<ExitCode, Failure> {
    print_bytes(&args.page(Cli::command()).map_err(Failure::Manual)?)
}

fn print_bytes(text: &[u8]) -> Result<ExitCode, Failure> {
    print(|out| out.write_all(text)).map(|()| ExitCode::SUCCESS)
}

/// Writes results to standard output.
fn print(show: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    show(&mut out).and_then(|()| out.flush()).map_err(Failure::Output)
}

/// The verdict of `--strict` on a replay.
fn judge(summary: &Summary) -> ExitCode {
    let file = &summary.trace.file;
    let Some(agreement) = &summary.agreement else {
        complain(format_args!(
            "{file}: --strict compares with recorded device writes, and there are none. \
             Record msr:write_msr with the filter 'msr == 0x6e0'"
        ));
        return ExitCode::from(NOT_AS_WANTED);
    };
    if agreement.agrees {
        return ExitCode::SUCCESS;
    }
    if !agreement.damage.is_empty() {
        complain(format_args!("{file}: the trace cannot have happened like that, see above"));
    }
    for Measure { measure, recorded, replayed, inside } in &agreement.measures {
        if !inside {
            complain(format_args!(
                "{file}: {} {replayed} replayed, {recorded} recorded: more than 5 % off",
                measure.replace('_', " ")
            ));
        }
    }
    for Comparison { policy, verdict, .. } in &agreement.others {
        if *verdict == Told::FitsBetter {
            complain(format_args!(
                "{file}: {policy} fits better than {}, which its kernel should have",
                agreement.policy
            ));
        }
    }
    ExitCode::from(NOT_AS_WANTED)
}

/// Says something on standard error, if anybody listens.
fn complain(message: impl Display) {
    let _ = writeln!(io::stderr(), "tickless: {message}");
}
