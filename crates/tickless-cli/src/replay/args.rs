//! The command line of `tickless replay`.

use crate::output::Format;
use clap::ValueEnum;
use std::path::PathBuf;
use tickless_trace::replay::ReplayPolicy;

/// What follows `tickless replay`.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The traces: files, patterns such as '*.dat', or - for standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Only this policy; may be given several times
    #[arg(long, value_enum)]
    pub(crate) policy: Vec<PolicyArg>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Also write what happened when, for ui.perfetto.dev; of one trace
    ///
    /// A track for each CPU's idling, its timers by function, and the writes of its timer device,
    /// recorded and under each policy.
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Replay what is recorded and nothing else
    ///
    /// Otherwise an operation without a record is inferred where the record contradicts itself
    /// without it, and counted.
    #[arg(long)]
    pub(crate) no_inference: bool,
    /// Fail unless the trace is sound and the replay comes within 5 % of all that it recorded
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PolicyArg {
    /// Every removal of the first timer programs the device: Linux until 5.14
    Eager,
    /// No removal does
    Lazy,
    /// A cancel does, a restart is judged as a whole: Linux 5.15 to 7.0
    RestartAware,
    /// That, but the scheduler's slice timer leaves the device alone
    LazyTimers,
    /// Restart-aware, but an interrupt's end leaves the device to the scheduler
    RearmPutOff,
    /// Both additions: Linux since 7.1
    #[value(name = "linux-7.1")]
    Linux71,
}

impl From<PolicyArg> for ReplayPolicy {
    fn from(arg: PolicyArg) -> ReplayPolicy {
        match arg {
            PolicyArg::Eager => ReplayPolicy::Eager,
            PolicyArg::Lazy => ReplayPolicy::Lazy,
            PolicyArg::RestartAware => ReplayPolicy::RestartAware,
            PolicyArg::LazyTimers => ReplayPolicy::LazyTimers,
            PolicyArg::RearmPutOff => ReplayPolicy::DeferredRearm,
            PolicyArg::Linux71 => ReplayPolicy::Linux71,
        }
    }
}
