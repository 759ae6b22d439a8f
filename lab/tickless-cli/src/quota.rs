//! The command `tickless quota`, which predicts what another limit of CPU time would have done.

mod page;

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, Results, bare, note, paragraph, print, seen, write_csv, write_table};
use crate::selection::ThreadArgs;
use crate::traces;
use crate::values::parse_with_unit;
use clap::builder::NonEmptyStringValueParser;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tickless_core::time::Ns;
use tickless_lab::output::write;
use tickless_lab::text::time;
use tickless_trace::quota::{Band, Least, Prediction, Request, Setting, predict};

/// Predict what another CPU limit would have done to a recorded group of threads
///
/// Takes each thread's work between two sleeps from a trace, and runs it under each limit: how
/// many periods are throttled, how long CPUs are stopped, how late the work is done, and the
/// least limit with which little is delayed. The most important result comes last.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/quota.txt"))]
pub struct QuotaArgs {
    /// A trace that was recorded with `tickless record --events quota`; - is standard input
    trace: PathBuf,
    /// The control group of the trace, by the end of its path
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new(),
        conflicts_with_all = ["process", "pid", "thread"])]
    cgroup: Option<String>,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Do not count the delays of threads with this in their name, or with this number
    #[arg(long, value_name = "NAME|PID", value_delimiter = ',')]
    without: Vec<String>,
    /// Limits in CPUs, as Kubernetes counts: 1.5 is 150 ms in 100 ms; from the mean use if left out
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = cpus)]
    limit: Vec<f64>,
    /// The periods; if left out the recorded one, or 100ms
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_with_unit)]
    period: Vec<Duration>,
    /// Bursts in percent of the quota; if left out the recorded one, or 0
    #[arg(long, value_name = "PERCENT", value_delimiter = ',',
        value_parser = percent)]
    burst: Vec<f64>,
    /// Numbers of CPUs; as many as in the trace if left out
    #[arg(long, value_name = "N", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    cpus: Vec<u16>,
    /// Work is delayed if it is done later than without a limit by more than this
    #[arg(long, value_name = "TIME", value_parser = parse_with_unit, default_value = "5ms")]
    delay: Duration,
    /// Look for the least limit with which at most this share of the work is delayed
    #[arg(long, value_name = "PERCENT", default_value = "1",
        value_parser = percent)]
    delayed: f64,
    /// Also write a page with the curves
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Parses a number of CPUs as Kubernetes writes it: `1.5`, or `500m` for thousandths.
fn cpus(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('m').map_or((text, 1.0), |number| (number, 1e3));
    let number = number.trim().parse().ok().filter(|cpus: &f64| *cpus > 0.0 && *cpus <= 4_096.0);
    let wrong = || format!("{text:?} is not a number of CPUs; write one such as 1.5 or 500m");
    number.map(|number| number / unit).ok_or_else(wrong)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').parse().ok();
    let usable = number.filter(|percent: &f64| (0.0..=100.0).contains(percent));
    usable.ok_or_else(|| format!("{text:?} is not a percentage from 0 to 100"))
}

impl Command for QuotaArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let trace = traces::read(&self.trace)?;
        let request = Request {
            cgroup: self.cgroup.clone(),
            selection: self.threads.selection(),
            without: self.without.clone(),
            cpus: self.cpus.iter().map(|&cpus| cpus.into()).collect(),
            limits: self.limit.clone(),
            periods_us: self.period.iter().map(|period| period.as_micros() as u64).collect(),
            bursts_percent: self.burst.clone(),
            delay: Ns::from_duration(self.delay),
            delayed_percent_max: self.delayed,
        };
        let mut prediction = predict(&trace, &request)?;
        traces::complain_of(&trace, self.format, &mut prediction.notes);
        if let Some(path) = &self.html {
            let page = page::page(&prediction);
            write(path, page.as_ref()).map_err(|error| Failure::file(path, error))?;
        }
        print(&prediction, self.format)?;
        Ok(Exit::Success)
    }
}

/// The headings of the table's columns, in the terminal and on the HTML page.
const HEADER: [&str; 11] = [
    "CPUs",
    "limit",
    "period",
    "burst",
    "throttled",
    "stood",
    "p50",
    "p99",
    "longest",
    "delay p99",
    "delayed",
];

/// Writes one value, or two where they differ.
fn band<T: Copy>(it: Band<T>, text: impl Fn(T) -> String) -> String {
    let (least, most) = (text(it.least), text(it.most));
    if least == most { most } else { format!("{least}..{most}") }
}

fn cells(setting: &Setting) -> [String; 11] {
    let Setting { cpus, limit_cpus, period_us, burst_us, .. } = *setting;
    let (stood, delay) = (setting.stood_ns, setting.delay_ns);
    let throttled = band(setting.throttled_percent, |percent| format!("{percent:.0}")) + " %";
    let known = |text: String| if setting.is_open() { "unknown".to_string() } else { text };
    [
        cpus.to_string(),
        format!("{limit_cpus:.2}"),
        time(period_us * 1_000),
        time(burst_us * 1_000),
        known(throttled),
        known(band(stood.sum, time)),
        time(stood.p50),
        time(stood.p99),
        time(stood.max),
        time(delay.p99),
        format!("{:.1} %", setting.delayed_percent),
    ]
}

fn summary(prediction: &Prediction) -> String {
    let Prediction { file, threads, pieces, seconds, cpu_seconds, mean_cpus, .. } = prediction;
    let of = prediction.group.as_ref().map(|group| format!(" of {group}")).unwrap_or_default();
    let recorded = prediction.recorded;
    let limit = match recorded.quota_us.zip(recorded.period_us) {
        Some((quota, period)) => {
            format!("a limit of {} in {}", time(quota * 1_000), time(period * 1_000))
        }
        None => "no known limit".to_string(),
    };
    let counted = match recorded.throttled.zip(recorded.periods).zip(recorded.stood_ns.map(time)) {
        Some(((throttled, periods), stood)) if recorded.quota_us.is_some() => {
            format!(
                ", throttled in {throttled} of {periods} periods; CPUs stood still for {stood}{}",
                foretold(prediction).unwrap_or_default()
            )
        }
        _ => String::new(),
    };
    format!(
        "{file}{}: {threads} threads{of}, {pieces} pieces of work in {seconds:.2} s. They used \
         {cpu_seconds:.2} s of CPU time, {mean_cpus:.2} CPUs on average, under {limit}{counted}.",
        seen(prediction.seen_percent)
    )
}

/// What is predicted for the recorded limit, to be compared with what the kernel counted.
fn foretold(Prediction { recorded, settings, .. }: &Prediction) -> Option<String> {
    let limit = (recorded.quota_us?, recorded.period_us?, recorded.burst_us?);
    let mut known = settings.iter().filter(|it| !it.is_open());
    let it = known.find(|it| (it.quota_us, it.period_us, it.burst_us) == limit)?;
    let Setting { cpus, throttled, periods, stood_ns, .. } = it;
    let throttled = band(*throttled, |throttled| format!("{throttled:.1}"));
    let stood = band(stood_ns.sum, time);
    Some(format!(" (predicted for {cpus} CPUs: {throttled} of {periods:.1}; {stood})"))
}

fn verdict(prediction: &Prediction, least: &Least) -> String {
    let Least { cpus, period_us, burst_percent, limit_cpus, quota_us } = least;
    let late = time(prediction.delay_ns);
    let share = prediction.delayed_percent_max;
    let with = format!("a period of {} and a burst of {burst_percent} %", time(period_us * 1_000));
    match limit_cpus.zip(*quota_us) {
        Some((cpus, quota)) => format!(
            "With {with}, the least limit that delays at most {share} % of the work by more than \
             {late} is {cpus:.2} CPUs: {} in {}.",
            time(quota * 1_000),
            time(period_us * 1_000)
        ),
        None => format!(
            "With {with}, no limit up to {cpus} CPUs delays at most {share} % of the work by more \
             than {late}."
        ),
    }
}

impl Results for Prediction {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        paragraph(out, "", &summary(self))?;
        self.notes.iter().try_for_each(|note| paragraph(out, "  - ", note))?;
        writeln!(out)?;
        // These columns are left out if they tell nothing.
        let any = |is_it: fn(&Setting) -> bool| self.settings.iter().any(is_it);
        let has_cpus = self.settings.iter().any(|it| it.cpus != self.settings[0].cpus);
        let shown = HEADER.map(|column| match column {
            "CPUs" => has_cpus,
            "burst" => any(|it| it.burst_us > 0),
            // Beside other work it is no more than a magnitude, and its room is needed.
            "p50" => !any(|it| it.throttled.least < it.throttled.most),
            _ => true,
        });
        let select = |cells: [String; 11]| -> Vec<String> {
            cells.into_iter().zip(shown).filter_map(|(cell, shown)| shown.then_some(cell)).collect()
        };
        let header = select(HEADER.map(str::to_string));
        let mut table = bare(&header, 0);
        self.settings.iter().for_each(|setting| {
            table.add_row(select(cells(setting)));
        });
        write_table(&table, out)?;
        paragraph(out, "", note("quota columns"))?;
        writeln!(out)?;
        self.least.iter().try_for_each(|least| paragraph(out, "", &verdict(self, least)))
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "cpus,limit_cpus,quota_us,period_us,burst_us,periods,throttled_least,\
            throttled_most,throttled_percent_least,throttled_percent_most,stood_least_ns,\
            stood_most_ns,stood_p50_ns,stood_p99_ns,stood_max_ns,\
            delay_p50_ns,delay_p99_ns,delay_max_ns,delayed_percent";
        write_csv(header, &self.settings, out)
    }
}
