//! The command line of `tickless replay`.

use crate::output::Format;
use clap::ValueEnum;
use std::path::PathBuf;
use tickless_core::rearm::Policy;

/// What follows `tickless replay`.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The trace
    pub(crate) trace: PathBuf,
    /// Only this policy; may be given several times
    #[arg(long, value_enum)]
    pub(crate) policy: Vec<PolicyArg>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
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
    /// A cancel does, a restart is judged as a whole: Linux since 5.15
    RestartAware,
}

impl From<PolicyArg> for Policy {
    fn from(arg: PolicyArg) -> Policy {
        match arg {
            PolicyArg::Eager => Policy::Eager,
            PolicyArg::Lazy => Policy::Lazy,
            PolicyArg::RestartAware => Policy::RestartAware,
        }
    }
}
