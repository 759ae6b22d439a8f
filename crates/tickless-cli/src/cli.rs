//! The command line.
//!
//! Results go to standard output, everything else to standard error. Neither being closed is a
//! reason to panic: who reads our output may have seen enough.

use crate::compare::{self, args::CompareArgs, args::CompareError};
use crate::doctor::{self, args::DoctorArgs};
use crate::fleet::{self, args::FleetArgs, args::FleetError};
use crate::hangup;
use crate::late::{self, args::LateArgs, args::LateError};
use crate::latency::args::{LatencyArgs, LatencyError};
use crate::machines::args::{MachinesArgs, Outcome};
use crate::manual::{CompletionsArgs, ManArgs, ManualError};
use crate::output::Colours;
use crate::project::{self, args::ProjectArgs, args::ProjectFailure};
use crate::record::args::RecordArgs;
use crate::replay::{self, args::ReplayArgs};
use crate::report::args::ReportArgs;
use crate::study::{self, args::StudyArgs};
use crate::sweep::{self, args::Outcome as SweepOutcome, args::SweepArgs, args::SweepFailure};
use crate::top::args::{TopArgs, TopError};
use crate::traces;
use clap::{CommandFactory, Parser, Subcommand};
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tickless_lab::studies::{Study, StudyError};
use tickless_trace::read::TraceError;
use tickless_trace::record::{self, RecordError};
use tickless_trace::replay::{
    Comparison, Inference, Measure, ReplayPolicy, Summary, Verdict, summarise, write_timeline,
};

/// Measures, explains and predicts what timers cost.
#[derive(Debug, Parser)]
#[command(name = "tickless", version, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    tickless replay traces/nginx.txt.gz\n  \
    sudo tickless top\n  \
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
    /// Run all five studies, simulated and live, and write one page
    ///
    /// Writes report.html, a self-contained page, and report.json with the same figures for
    /// programs. Takes about two minutes. A study that fails is shown as failed, with what to do;
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
    /// recorded. Reads ftrace text, trace.dat, perf.data, and what `trace-cmd report` and
    /// `perf script` print; plain or gzip. Several traces give a table with a row each and a total.
    #[command(after_help = "Examples:\n  \
        tickless replay traces/nginx.txt.gz\n  \
        tickless replay trace.txt --policy lazy --format json\n  \
        tickless replay trace.dat perf.data 'traces/*.gz'\n  \
        ssh box cat trace.txt.gz | tickless replay - --strict\n\n\
        Exit status: 0 if replayed, 1 if a trace cannot be used or the results not written,\n\
        2 for a wrong command line, 3 with --strict if the replay is more than 5 % off what was\n\
        recorded, if the trace is damaged, or if no device writes were recorded.")]
    Replay(ReplayArgs),
    /// Record what the kernel does with its timers, for replay
    ///
    /// Records the timer events of all CPUs, the timer interrupts, and the writes to the timer
    /// device, from tracefs (root). Does not disturb other users of tracing, and leaves nothing
    /// behind, however it ends. Ctrl-C ends it early, and keeps what was recorded.
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
    /// Show live which processes arm timers, cancel them, and wake idle CPUs
    ///
    /// Counts the kernel's timer events (root), by eBPF programs in the kernel if possible, or else
    /// from tracefs. The columns are rates per second: idle CPUs woken, writes of timer devices,
    /// timers armed, of these armed again while pending, the share that was cancelled, and timers
    /// that fired. Then come the kind of timer, how far ahead it is armed, and its period: x2 for
    /// two timers, ! if some of them expire together.
    #[command(after_help = "Examples:\n  \
        sudo tickless top\n  \
        sudo tickless top -c --sort writes --filter nginx\n  \
        sudo tickless top --batch 10 -i 1s --format json > top.jsonl\n\n\
        Keys: q quits, s and S change what is sorted by, c shows callbacks, / filters, space\n\
        freezes, arrows scroll.\n\n\
        Exit status: 0 if shown, 1 if that was not possible, 2 for a wrong command line,\n\
        130 if interrupted; then what was counted until then is shown, and marked.")]
    Top(TopArgs),
    /// Explain why threads that slept ran late
    ///
    /// Follows each sleep from its deadline through the interrupt and the callback to the thread
    /// that runs, and shows for each hop how long it took and what the CPU did meanwhile. Reads a
    /// trace, or watches this machine (root). The most important result comes last.
    #[command(after_help = "Examples:\n  \
        sudo tickless late --watch -D 10s --threshold 500us\n  \
        sudo tickless record --events late -o slow.txt.gz -D 30s\n  \
        tickless late slow.txt.gz --format json\n\n\
        Exit status: 0 if explained, 1 if there is no trace or the results are not written,\n\
        2 for a wrong command line, 130 if --watch was interrupted.")]
    Late(LateArgs),
    /// Measure how late threads wake: our timers beside the kernel's own sleeps
    ///
    /// Like cyclictest: a thread sleeps until a point in time, looks at the clock when it wakes,
    /// and sleeps until an interval later. The sleepers are measured in turn, so that what
    /// disturbs one disturbs all. Ctrl-C ends it early, and shows the results so far.
    #[command(after_help = "Examples:\n  \
        tickless latency\n  \
        tickless latency -S -p 90 -i 500 -D 1m -h 100\n  \
        tickless latency --sleeper hrtimer,timeout -l 1000 --json\n  \
        tickless latency -q -D 5 --limit p99=200us --limit hrtimer.max=5ms\n  \
        sudo tickless latency -p 90 --break 200us\n\n\
        Exit status: 0 if measured, 1 if that was not possible or the results not written,\n\
        2 for a wrong command line or if there was nothing to hold a limit against,\n\
        3 if a limit is exceeded or a wakeup was later than --break.")]
    Latency(LatencyArgs),
    /// Show what moved between two results, beside both spreads
    ///
    /// Takes two report.json, or the JSON output of study, latency, replay or top. A figure moved
    /// if the two spreads, from the least to the greatest repetition, do not overlap. Without a
    /// spread, any difference is a move. Figures are costs: times, and counts of work.
    #[command(after_help = "Examples:\n  \
        tickless compare before/report.json after/report.json --html moved.html\n  \
        tickless compare monday.json today.json --fail-above 10%\n  \
        sudo tickless top --batch 10 --format json > top.jsonl\n\n\
        Exit status: 0 if compared, 1 if that was not possible or the results not written,\n\
        2 for a wrong command line, 3 if a figure is worse by more than --fail-above.")]
    Compare(CompareArgs),
    /// Show the simulated machines, and measure or predict this one
    ///
    /// Without arguments, shows the list. With a name, shows every number of that machine, and
    /// whether it was published, measured, assumed with a range, or fitted to a cell.
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
    /// Find needless costs of this machine's timers, and what to do about them
    ///
    /// Watches for some seconds: the clock source, device writes, cancels, idle ticks, timers that
    /// expire together, and late sleeps. Shows for each the figure, how it was obtained, what to
    /// do, and which study explains it. As root it records the kernel's timers and sees more; what
    /// it could not see is unknown, with the reason. It does not change the machine.
    #[command(after_help = "Examples:\n  \
        sudo tickless doctor\n  \
        tickless doctor -D 10s --check idle-ticks,clock-source\n  \
        sudo tickless doctor --strict --format json\n\n\
        Exit status: 0 if nothing is bad (--strict: nor worth a look), 1 if the results cannot\n\
        be written, 2 for a wrong command line, 3 if something is bad (--strict: or worth a\n\
        look), 130 if interrupted.")]
    Doctor(DoctorArgs),
    /// Project what the timers of a recorded program would cost on another machine
    ///
    /// Lays the operations of a trace onto the CPUs of a simulated machine and runs them through
    /// the timer core at that machine's prices. With several numbers of CPUs it says what limits
    /// first. Rates and shares do not need the whole trace, so it runs about a million operations
    /// unless --seconds says more.
    #[command(after_help = "Examples:\n  \
        tickless project traces/nginx.txt.gz --machine ivybridge-ex-16s --cpus 2,30,120,480\n  \
        tickless project trace.txt.gz --machine new.toml --clock hpet --policy lazy\n  \
        tickless machines --measure -o here.toml && \\\n    \
        tickless project trace.txt.gz --machine here.toml --seconds 10\n\n\
        Exit status: 0 if projected, 1 if a trace cannot be used or the results not written,\n\
        2 for a wrong command line or machine, 130 if interrupted.")]
    Project(ProjectArgs),
    /// Summarise the traces of many machines
    ///
    /// Replays each trace under three policies. Shows over all machines the quantiles of device
    /// writes, wakeups and what each policy would have saved, and the ten machines that differ
    /// most, with the reason. A trace that cannot be used is a row with its error.
    #[command(after_help = "Examples:\n  \
        tickless fleet traces/*.txt.gz\n  \
        tickless fleet 'traces/*.dat' --html fleet.html\n  \
        tickless fleet traces/*.txt.gz --format csv > machines.csv\n\n\
        Exit status: 0 if done, 1 if no trace can be used or the results not written, 2 for a\n\
        wrong command line, 130 if interrupted.")]
    Fleet(FleetArgs),
    /// Run a campaign: studies, replays and projections over many machines, traces and seeds
    ///
    /// Runs the cells that are missing in the folder, and no others, on all CPUs. So you can stop
    /// it and continue later, and split it over machines with --shard. A cell that fails is a row
    /// with its error. Ctrl-C writes the results so far.
    #[command(after_help = "Examples:\n  \
        tickless sweep campaign.toml --out results\n  \
        tickless sweep campaign.toml --out results --shard 0/8\n  \
        sbatch --array=0-99 --wrap 'tickless sweep campaign.toml --out results'\n  \
        tickless sweep status results\n  \
        tickless sweep merge results -o results.csv\n\n\
        Exit status: 0 if done, failed cells included, 1 if files cannot be written or a merge is\n\
        not whole, 2 for a wrong command line or campaign, 130 if interrupted.")]
    Sweep(SweepArgs),
    /// Print shell completions
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
    NoFile(traces::NoFile),
    Record(RecordError),
    Study(StudyError),
    Late(LateError),
    Top(TopError),
    Compare(CompareError),
    Latency(LatencyError),
    Report(io::Error),
    Fleet(FleetError),
    Sweep(SweepFailure),
    Project(ProjectFailure),
    Manual(ManualError),
    Output(io::Error),
}

const WRONG_COMMAND_LINE: u8 = 2;
/// What was measured is not what it should be.
const NOT_AS_WANTED: u8 = 3;

/// As shells expect of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

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
        Command::Top(args) => run_top(&args),
        Command::Compare(args) => run_compare(&args),
        Command::Latency(args) => run_latency(&args),
        Command::Machines(args) => run_machines(&args),
        Command::Doctor(args) => run_doctor(&args),
        Command::Project(args) => run_project(&args),
        Command::Fleet(args) => run_fleet(&args),
        Command::Sweep(args) => run_sweep(&args),
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
        Err(Failure::Late(error)) => failed(error),
        Err(Failure::Top(error)) => failed(error),
        Err(Failure::Compare(error)) => failed(error),
        Err(Failure::Latency(error)) => failed(error),
        Err(Failure::Manual(error)) => failed(error),
        Err(Failure::NoFile(error)) => failed(error),
        Err(Failure::Trace(error)) => failed(error),
        Err(Failure::Record(error)) => failed(error),
        Err(Failure::Fleet(error)) => {
            complain(&error);
            let is_interrupted = matches!(error, FleetError::Interrupted);
            if is_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::FAILURE }
        }
        Err(Failure::Project(error)) => {
            complain(&error);
            if error.is_usage() { ExitCode::from(WRONG_COMMAND_LINE) } else { ExitCode::FAILURE }
        }
        Err(Failure::Sweep(error)) => {
            complain(&error);
            if error.is_usage() { ExitCode::from(WRONG_COMMAND_LINE) } else { ExitCode::FAILURE }
        }
        Err(Failure::Study(error)) => {
            complain(&error);
            if error.is_usage() { ExitCode::from(WRONG_COMMAND_LINE) } else { ExitCode::FAILURE }
        }
    }
}

/// Says why nothing came of it.
fn failed(error: impl Display) -> ExitCode {
    complain(error);
    ExitCode::FAILURE
}

fn run_report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let written = args.run().map_err(Failure::Report)?;
    print(|out| written.show(out))?;
    let failed = written.report.failures().next().is_some();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let policies: Vec<ReplayPolicy> = match args.policy.as_slice() {
        [] => ReplayPolicy::DEFAULT.to_vec(),
        some => some.iter().map(|&policy| policy.into()).collect(),
    };
    let inference = if args.no_inference { Inference::Off } else { Inference::On };
    let files = traces::expand(&args.traces).map_err(Failure::NoFile)?;
    if args.timeline.is_some() && files.len() > 1 {
        complain("--timeline is of one trace, and these are several. Give one of them");
        return Ok(ExitCode::from(WRONG_COMMAND_LINE));
    }
    let replay = |path: &PathBuf| {
        let trace = traces::read(path)?;
        trace.messages().for_each(complain);
        let timeline = args.timeline.as_ref().map(|file| {
            let mut out = io::BufWriter::new(fs::File::create(file)?);
            write_timeline(&trace, &policies, inference, &mut out)?;
            out.flush()
        });
        Ok((summarise(&trace, &policies, inference), timeline.transpose()))
    };
    if let [file] = files.as_slice() {
        let (summary, timeline) = replay(file).map_err(Failure::Trace)?;
        timeline.map_err(Failure::Output)?;
        print(|out| replay::show::show(&summary, args.format, out))?;
        return Ok(if args.strict { judge(&summary) } else { ExitCode::SUCCESS });
    }
    // One that cannot be used costs its row, and is told by the exit status as well.
    let mut summaries = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for result in files.iter().map(replay) {
        match result {
            Ok((summary, _)) => summaries.push(summary),
            Err(error) => {
                let error: TraceError = error;
                complain(error);
                code = ExitCode::FAILURE;
            }
        }
    }
    print(|out| replay::many::show(&summaries, args.format, out))?;
    let verdicts = summaries.iter().filter(|_| args.strict).map(judge);
    Ok(verdicts.fold(code, |code, verdict| if code == ExitCode::SUCCESS { verdict } else { code }))
}

fn run_record(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let recorded = args.run(&|note| complain(note)).map_err(Failure::Record)?;
    complain(&recorded);
    recorded.complaint().into_iter().chain(recorded.unseen()).for_each(complain);
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
    Ok(if late.is_partial { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn run_top(args: &TopArgs) -> Result<ExitCode, Failure> {
    args.run(&|note| complain(note)).map_err(|error| match error {
        TopError::Output(error) => Failure::Output(error),
        error => Failure::Top(error),
    })
}

fn run_compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let comparison = args.run().map_err(Failure::Compare)?;
    print(|out| compare::show::show(&comparison, args.shown(), args.format, out))?;
    let worse = args.worse(&comparison);
    if worse.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    complain(format_args!("worse by more than --fail-above: {}", worse.join(", ")));
    Ok(ExitCode::from(NOT_AS_WANTED))
}

fn run_latency(args: &LatencyArgs) -> Result<ExitCode, Failure> {
    let latency = args.run(&|note| complain(note)).map_err(Failure::Latency)?;
    print(|out| latency.show(out))?;
    let (unknown, exceeded) = (latency.unknown(), latency.exceeded());
    let broken = latency.broken();
    broken.iter().chain(&exceeded).chain(&unknown).for_each(complain);
    Ok(match (exceeded.is_empty() && broken.is_none(), unknown.is_empty()) {
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

fn run_project(args: &ProjectArgs) -> Result<ExitCode, Failure> {
    let projected = args.run(&|message| complain(message)).map_err(Failure::Project)?;
    print(|out| project::show::show(&projected, args.format, out))?;
    Ok(ExitCode::SUCCESS)
}

fn run_fleet(args: &FleetArgs) -> Result<ExitCode, Failure> {
    let fleet = args.run().map_err(Failure::Fleet)?;
    print(|out| fleet::show::show(&fleet, args.format, out))?;
    let none = fleet.failed() == fleet.machines.len();
    Ok(if none { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_sweep(args: &SweepArgs) -> Result<ExitCode, Failure> {
    let outcome = args.run().map_err(Failure::Sweep)?;
    print(|out| sweep::show::show(&outcome, out))?;
    let is_interrupted = matches!(outcome, SweepOutcome::Interrupted(_));
    Ok(if is_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
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
        if *verdict == Verdict::FitsBetter {
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
