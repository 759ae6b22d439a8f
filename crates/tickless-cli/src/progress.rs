//! A bar for people who wait, on standard error and only if that is a terminal.
//!
//! Nothing is drawn but by whoever measures, between two measurements: a thread that keeps a
//! bar moving would be in the figures.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far a measurement is.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar if standard error is a terminal, nothing otherwise.
    pub fn on_terminal() -> Progress {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Never a bar.
    pub fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden() }
    }

    /// So many steps lie ahead, of this.
    pub fn begin(&self, what: &'static str, steps: usize) {
        self.bar.reset();
        self.bar.set_message(what);
        self.bar.set_length(steps as u64);
        self.bar.tick();
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// All steps are done: the bar stays, and says so.
    pub fn done(&self, how: &str) {
        self.bar.abandon_with_message(how.to_string());
    }

    /// The line is left as it was found.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Ctrl-C leaves the line as it was found, and ends the program with the status that shells
    /// expect of it. Results are written only when they are whole, so nothing else is left.
    pub fn end_on_interrupt(&self) {
        let bar = self.bar.clone();
        // Where there cannot be a handler the signal ends the program by itself.
        let _ = ctrlc::set_handler(move || end(&bar));
    }

    /// The first Ctrl-C only sets `stop`, so that what there is can be shown; another ends the
    /// program.
    pub fn stop_on_interrupt(&self, stop: Arc<AtomicBool>) {
        let bar = self.bar.clone();
        let _ = ctrlc::set_handler(move || {
            if stop.swap(true, Ordering::Relaxed) {
                end(&bar);
            }
        });
    }
}

/// Bars below each other, for several measurements.
#[derive(Clone, Debug)]
pub struct Bars {
    all: MultiProgress,
}

impl Bars {
    /// Bars if standard error is a terminal, nothing otherwise.
    pub fn on_terminal() -> Bars {
        Bars { all: MultiProgress::new() }
    }

    /// Never a bar.
    pub fn hidden() -> Bars {
        Bars { all: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()) }
    }

    /// One more, of this name.
    pub fn add(&self, name: &'static str) -> Progress {
        let bar = self.all.add(ProgressBar::no_length());
        let template = "{prefix:<10}[{bar:30}] {pos}/{len} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name);
        bar.tick();
        Progress { bar }
    }

    /// Ctrl-C leaves the lines as they were found, does this, and ends the program with the
    /// status that shells expect of it.
    pub fn end_on_interrupt(&self, last: impl Fn() + Send + 'static) {
        let all = self.all.clone();
        // Where there cannot be a handler the signal ends the program by itself.
        let _ = ctrlc::set_handler(move || {
            let _ = all.clear();
            last();
            exit();
        });
    }
}

fn end(bar: &ProgressBar) {
    bar.finish_and_clear();
    exit();
}

/// Ends the program as shells expect of one that Ctrl-C ended, and leaves nothing behind.
fn exit() {
    const INTERRUPTED: i32 = 128 + 2;
    crate::interrupt::clean();
    std::process::exit(INTERRUPTED);
}
