//! Progress bars on standard error, if that is a terminal.
//!
//! Only the measuring thread draws, between two measurements: a second thread that redraws the bar
//! would disturb the measurements.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tickless_lab::interrupt;
use tickless_lab::progress::Progress;

#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub fn on_terminal() -> Bar {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Bar { bar }
    }

    pub fn hidden() -> Bar {
        Bar { bar: ProgressBar::hidden() }
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Does a piece of work, and shows a bar until the work ends or Ctrl-C ends the program.
    pub fn during<T>(work: impl FnOnce(&Bar) -> T) -> T {
        let bar = Bar::on_terminal();
        bar.end_on_interrupt();
        let result = work(&bar);
        bar.end();
        result
    }

    /// Makes Ctrl-C erase the bar and end the program, with the exit status that shells expect.
    /// Nothing else needs cleaning up, because results are written only when they are complete.
    fn end_on_interrupt(&self) {
        let bar = self.bar.clone();
        // Ignore errors: without a handler, Ctrl-C ends the program anyway.
        let _ = ctrlc::set_handler(move || end(&bar));
    }

    /// Makes the first Ctrl-C set `stop`, so that the results so far can be shown. The second
    /// Ctrl-C ends the program. Ten seconds after the first Ctrl-C the program ends in any case,
    /// because a thread is perhaps blocked in a read.
    pub fn stop_on_interrupt(&self, stop: Arc<AtomicBool>) {
        let bar = self.bar.clone();
        let _ = ctrlc::set_handler(move || {
            if stop.swap(true, Ordering::Relaxed) {
                end(&bar);
            }
            let bar = bar.clone();
            std::thread::spawn(move || {
                std::thread::park_timeout(GRACE);
                end(&bar);
            });
        });
    }
}

const GRACE: Duration = Duration::from_secs(10);

impl Progress for Bar {
    fn begin(&self, what: &'static str, steps: usize) {
        self.bar.reset();
        self.bar.set_message(what);
        self.bar.set_length(steps as u64);
        self.bar.tick();
    }

    fn step(&self) {
        self.bar.inc(1);
    }

    fn done(&self, how: &str) {
        self.bar.abandon_with_message(how.to_string());
    }
}

#[derive(Clone, Debug)]
pub struct Bars {
    all: MultiProgress,
}

impl Bars {
    pub fn on_terminal() -> Bars {
        Bars { all: MultiProgress::new() }
    }

    pub fn add(&self, name: &'static str) -> Bar {
        let bar = self.all.add(ProgressBar::no_length());
        let template = "{prefix:<10}[{bar:30}] {pos}/{len} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name);
        bar.tick();
        Bar { bar }
    }

    /// Makes Ctrl-C remove the bars and end the program.
    pub fn end_on_interrupt(&self) {
        let all = self.all.clone();
        // Ignore errors: without a handler, Ctrl-C ends the program anyway.
        let _ = ctrlc::set_handler(move || {
            let _ = all.clear();
            exit();
        });
    }
}

fn end(bar: &ProgressBar) {
    bar.finish_and_clear();
    exit();
}

/// Removes what the process would leave in the system, and ends it with the status for Ctrl-C.
fn exit() {
    const INTERRUPTED: i32 = 128 + 2;
    interrupt::clean();
    std::process::exit(INTERRUPTED);
}
