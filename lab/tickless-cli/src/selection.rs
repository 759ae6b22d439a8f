//! The options that select threads of a trace.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tickless_trace::late::Selection;

#[derive(Args, Debug)]
pub struct ThreadArgs {
    /// Only threads of processes whose name has this in it
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    process: Option<String>,
    /// Only the process, or the thread, with this number
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Only threads whose name has this in it
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    thread: Option<String>,
}

impl ThreadArgs {
    pub fn selection(&self) -> Selection {
        Selection {
            process: self.process.clone(),
            pid: self.pid,
            thread: self.thread.clone(),
            folds: false,
        }
    }
}
