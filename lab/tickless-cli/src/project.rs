//! The command `tickless project`, which runs a recorded trace on simulated machines.

use crate::command::{Command, Exit, Failure, complain};
use crate::output::{Format, Results, bare, note, paragraph, print, write_csv, write_table};
use crate::progress::Bar;
use crate::values::{Numbers, one_of, policy};
use std::io::{self, Write};
use std::path::PathBuf;
use tickless_fleet::project::{Clock, Projected, Projection, Request, Shares, project};
use tickless_fleet::row::Figure;
use tickless_lab::machines;
use tickless_lab::progress::Progress;
use tickless_lab::text::time;
use tickless_machine::size::CPUS_MAX;
use tickless_trace::Trace;
use tickless_trace::replay::streams::Streams;
use tickless_trace::replay::{Inference, ReplayPolicy};

/// Project what the timers of a recorded program would cost on another machine
///
/// Lays the operations of a trace onto the CPUs of a simulated machine and runs them through
/// the timer core at that machine's prices. With several numbers of CPUs it shows what limits
/// first. Rates and shares do not need the whole trace, so it runs about a million operations
/// unless --seconds says more.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/project.txt"))]
pub struct ProjectArgs {
    /// The trace
    trace: PathBuf,
    /// The machine: a name from `tickless machines`, or a file
    #[arg(long, value_name = "NAME|FILE")]
    machine: String,
    /// How many CPUs, such as 2,16,480: the points of a curve; the machine's own number if left out
    #[arg(long, value_name = "LIST", value_parser = |text: &str| {
        Numbers::within(text, 1..=CPUS_MAX.into())
    })]
    cpus: Option<Numbers>,
    /// The counter that the time is read from
    #[arg(long, default_value = "tsc", value_parser = one_of(&Clock::ALL, named))]
    clock: Clock,
    /// Only this policy; may be given several times
    #[arg(long, value_parser = policy(&ReplayPolicy::DEFAULT))]
    policy: Vec<ReplayPolicy>,
    /// Seed of the choices: which CPU of the trace each CPU repeats, and from which moment
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How much of the trace to run, at most all; about a million operations if left out
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn named(clock: Clock) -> (&'static str, &'static str) {
    let about = match clock {
        Clock::Tsc => "each CPU's own counter",
        Clock::Hpet => "one slow counter, which every CPU reads",
        Clock::Combined => "one slow counter, which one CPU reads for all",
    };
    (clock.name(), about)
}

impl Command for ProjectArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let spec = machines::find(&self.machine).map_err(Failure::usage)?;
        let own = u64::from(spec.costs().topology.cpus());
        let cpus = self.cpus.as_ref().map_or(vec![own], |cpus| cpus.0.clone());
        if let Some(seconds) = self.seconds.filter(|it| !(it.is_finite() && *it > 0.0)) {
            return Err(Failure::usage(format_args!("--seconds {seconds} is no time")));
        }
        let trace = Trace::read(&self.trace)?;
        trace.messages().for_each(complain);
        let streams = Streams::of(&trace, Inference::On);
        let policies = match self.policy.as_slice() {
            [] => &ReplayPolicy::DEFAULT[..],
            some => some,
        };
        let points = Bar::during(|progress| {
            progress.begin("projecting", cpus.len() * policies.len());
            let requests = cpus.iter().flat_map(|&count| {
                policies.iter().map(move |&policy| Request {
                    cpus: count as u16,
                    policy,
                    clock: self.clock,
                    seed: self.seed,
                    seconds: self.seconds,
                })
            });
            let point = |request| project(&streams, &spec, &request).inspect(|_| progress.step());
            requests.map(point).collect::<Result<Vec<Projection>, _>>()
        })?;
        print(&Projected::new(&trace, &spec, self.seed, points), self.format)?;
        Ok(Exit::Success)
    }
}

impl Results for Projected {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Projected { trace, trace_cpus, machine, points, .. } = self;
        let clock = points.first().map_or("", |point| point.clock);
        writeln!(out, "{trace} ({trace_cpus} CPUs) on {machine}, clock {clock}")?;
        writeln!(out, "\nOf each CPU's second:")?;
        let header = ["CPUs", "policy", "writes", "wakeups", "for nothing", "late p50", "p99"];
        let rows = points.iter().map(|point| {
            let time_of_all = f64::from(point.cpus) * point.seconds.max(1e-9);
            let each = |count: u64| format!("{:.1}", count as f64 / time_of_all);
            let counts = [point.device_writes, point.wakeups, point.spurious_wakeups].map(each);
            let late = [point.lateness_ns.p50, point.lateness_ns.p99].map(time);
            let name = [point.cpus.to_string(), point.policy.into()];
            name.into_iter().chain(counts).chain(late)
        });
        write_table(bare(&header, 2).add_rows(rows), out)?;
        writeln!(out, "\nPercent of the CPUs' time:")?;
        let header =
            ["CPUs", "policy", "timer code", "clock", "locks", "cancels", "device", "irqs"];
        let rows = points.iter().map(|point| {
            let Shares {
                timer_code, clock_read, lock_wait, cancel_wait, device, interrupts, ..
            } = point.percent;
            let shares = [timer_code, clock_read, lock_wait, cancel_wait, device, interrupts];
            let shares = shares.map(|share| format!("{share:.3}"));
            [point.cpus.to_string(), point.policy.into()].into_iter().chain(shares)
        });
        write_table(bare(&header, 2).add_rows(rows), out)?;
        paragraph(out, "", note("project shares"))?;
        writeln!(out)?;
        for Projection { cpus, policy, device_writes, recorded_writes, .. } in points {
            if let Some(recorded) = recorded_writes {
                let off = 100.0 * (*device_writes as f64 / (*recorded).max(1) as f64 - 1.0);
                let text = format!(
                    "{policy}, {cpus} CPUs: {device_writes} device writes, {recorded} recorded, \
                     {off:+.1} %"
                );
                paragraph(out, "  - ", &text)?;
            }
        }
        self.limits.iter().try_for_each(|limit| paragraph(out, "  - ", limit))?;
        paragraph(out, "    ", note("project assumption"))
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "cpus,policy,clock,figure,unit,role,value";
        let of_point = |point: &Projection| {
            let of_all = (point.cpus, point.policy, point.clock);
            // Format numbers in Rust's way, which writes whole numbers without a decimal point.
            let row = move |it: Figure| {
                let value = it.value.map(|value| value.to_string());
                (of_all, it.figure, it.unit, it.role, value)
            };
            point.figures().into_iter().map(row)
        };
        write_csv(header, self.points.iter().flat_map(of_point), out)
    }
}
