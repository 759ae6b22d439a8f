//! A bar for people who wait, on standard error and only if that is a terminal.
//!
//! Nothing is drawn but by whoever measures, between two measurements: a thread that keeps a
//! bar moving would be in the figures.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tickless_lab::interrupt;
use tickless_lab::progress::Progress;

/// A bar for one measurement.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar if standard error is a terminal, nothing otherwise.
    pub fn on_terminal() -> Bar {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Bar { bar }
    }

    /// Never a bar.
    pub fn hidden() -> Bar {
        Bar { bar: ProgressBar::hidden() }
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

    /// One more, of this name.
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
    interrupt::clean();
    std::process::exit(INTERRUPTED);
}
